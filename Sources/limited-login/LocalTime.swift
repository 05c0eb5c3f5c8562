internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import LimitedLogin
internal import Sockets

/// Moments as people read them: the local time, and how long ago or ahead.
enum LocalTime {
    /// For instance `2 hours ago (2026-11-21 05:40:12 +0100)`.
    static func describe(_ moment: NumericDate, now: NumericDate) -> String {
        "\(relative(moment, now: now)) (\(absolute(moment)))"
    }

    /// For instance `2026-11-21 05:40:12 +0100`.
    static func absolute(_ moment: NumericDate) -> String {
        var seconds = time_t(moment.wholeSeconds)
        var parts = unsafe tm()
        // Both are locals of this call. A year that a tm cannot hold is nil.
        guard unsafe localtime_r(&seconds, &parts) != nil else { return "\(moment.wholeSeconds) s since 1970" }
        let offset = unsafe parts.tm_gmtoff / 60
        let zone = (offset < 0 ? "-" : "+") + two(abs(offset) / 60) + two(abs(offset) % 60)
        let date = unsafe "\(Int(parts.tm_year) + 1900)-\(two(Int(parts.tm_mon) + 1))-\(two(Int(parts.tm_mday)))"
        let clock = unsafe "\(two(Int(parts.tm_hour))):\(two(Int(parts.tm_min))):\(two(Int(parts.tm_sec)))"
        return "\(date) \(clock) \(zone)"
    }

    /// For instance `2 hours ago`, `in 52 minutes`, `now`.
    static func relative(_ moment: NumericDate, now: NumericDate) -> String {
        // Both are from 0 to 2⁵³, so the difference fits.
        let difference = moment.wholeSeconds - now.wholeSeconds
        guard difference != 0 else { return "now" }
        let length = duration(difference.magnitude)
        return difference < 0 ? "\(length) ago" : "in \(length)"
    }

    private static func duration(_ seconds: UInt64) -> String {
        switch seconds {
        case ..<120: count(seconds, "second")
        case ..<7_200: count(seconds / 60, "minute")
        case ..<172_800: count(seconds / 3_600, "hour")
        default: count(seconds / 86_400, "day")
        }
    }

    private static func count(_ number: UInt64, _ unit: String) -> String {
        "\(number) \(unit)\(number == 1 ? "" : "s")"
    }

    private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

/// Moments on a command line.
enum Moment {
    static func now() throws(StartError) -> NumericDate {
        guard let now = NumericDate(secondsSince1970: WallClock.unixSeconds()) else {
            throw StartError("this machine's clock stands before 1970")
        }
        return now
    }

    /// The moment that a person wrote: `1700000000` or `2023-11-14T22:13:20Z`.
    static func read(_ text: String) throws -> NumericDate {
        guard let moment = secondsSince1970(text).flatMap({ NumericDate(secondsSince1970: $0) }) else {
            throw ValidationError("use seconds since 1970 or 2024-01-31T12:00:00Z.")
        }
        return moment
    }

    private static func secondsSince1970(_ text: String) -> Double? {
        if let seconds = Double(text) { return seconds }
        let style = Date.ISO8601FormatStyle()
        // The style takes 30 February for 1 March, so what stands before the zone must come back as it was given.
        let local = text.prefix("2023-11-14T22:13:20".count) + "Z"
        guard let date = try? Date(String(local), strategy: style), date.formatted(style) == local,
            let seconds = try? Date(text, strategy: style).timeIntervalSince1970
        else { return nil }
        return seconds
    }
}
