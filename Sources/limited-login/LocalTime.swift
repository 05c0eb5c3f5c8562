internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import LLHTTP
internal import LimitedLogin

/// Moments in a form for people: the local time, and the distance from now.
enum LocalTime {
    /// For instance `2 hours ago (2026-11-21 05:40:12 +0100)`; `in 52 minutes` or `now` in place of the first words.
    static func describe(_ moment: NumericDate, now: NumericDate) -> String {
        // Both are from 0 to 2⁵³, so the difference fits.
        let difference = moment.wholeSeconds - now.wholeSeconds
        let seconds = difference.magnitude
        guard seconds != 0 else { return "now (\(absolute(moment)))" }
        let (count, unit) =
            switch seconds {
            case ..<120: (seconds, "second")
            case ..<7_200: (seconds / 60, "minute")
            case ..<172_800: (seconds / 3_600, "hour")
            default: (seconds / 86_400, "day")
            }
        let length = "\(count) \(unit)\(count == 1 ? "" : "s")"
        return "\(difference < 0 ? "\(length) ago" : "in \(length)") (\(absolute(moment)))"
    }

    private static func absolute(_ moment: NumericDate) -> String {
        var seconds = time_t(moment.wholeSeconds)
        var parts = unsafe tm()
        var text = [UInt8](repeating: 0, count: 64)
        // All are locals of this call. A year that a tm cannot hold gives nil; any other takes 35 bytes at most.
        guard unsafe localtime_r(&seconds, &parts) != nil else { return "\(moment.wholeSeconds) s since 1970" }
        let count = unsafe text.withUnsafeMutableBytes { buffer in
            unsafe strftime(buffer.baseAddress, buffer.count, "%Y-%m-%d %H:%M:%S %z", &parts)
        }
        return String(decoding: text[..<count], as: UTF8.self)
    }
}

struct AsOf: ParsableArguments {
    @Option(help: "Judge as of then: 1700000000 or 2024-01-31T12:00:00Z.", transform: Moment.read)
    var at: NumericDate?

    func moment() throws(StartError) -> NumericDate {
        if let at { at } else { try Moment.now() }
    }
}

enum Moment {
    static func now() throws(StartError) -> NumericDate {
        guard let now = NumericDate(secondsSince1970: WallClock.unixSeconds()) else {
            throw StartError("this machine's clock stands before 1970")
        }
        return now
    }

    /// The moment in a person's text: `1700000000` or `2023-11-14T22:13:20Z`.
    static func read(_ text: String) throws -> NumericDate {
        guard let moment = secondsSince1970(text).flatMap({ NumericDate(secondsSince1970: $0) }) else {
            throw ValidationError("use seconds since 1970 or 2024-01-31T12:00:00Z.")
        }
        return moment
    }

    private static func secondsSince1970(_ text: String) -> Double? {
        if let seconds = Double(text) { return seconds }
        let style = Date.ISO8601FormatStyle()
        // The style reads 30 February as 1 March, so the text before the zone must come back unchanged.
        let local = text.prefix("2023-11-14T22:13:20".count) + "Z"
        guard let date = try? Date(String(local), strategy: style), date.formatted(style) == local,
            let seconds = try? Date(text, strategy: style).timeIntervalSince1970
        else { return nil }
        return seconds
    }
}
