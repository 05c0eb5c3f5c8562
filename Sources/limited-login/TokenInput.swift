internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LLStandIn
internal import LimitedLogin

/// Gets the token to judge; a file or standard input is trimmed.
enum TokenInput {
    /// One and a half times the greatest token: enough to tell that a token is too long.
    static let byteLimit = 49_152

    static func read(argument: String?, file: String?) throws -> [UInt8] {
        if let argument { return argument == "-" ? readStandardInput() : Array(argument.utf8) }
        return try file.map { trimmed(try contents(of: $0, code: Exit.verifyUsage)) } ?? []
    }

    /// The bytes of a file; if it cannot be read, a line on standard error says so.
    static func contents(of file: String, limit: Int = byteLimit, flag: String = "", code: ExitCode) throws -> [UInt8] {
        do throws(FileContents.Failure) {
            return try FileContents.read(path: file, limit: limit, allowingPipe: true)
        } catch { throw Exit.refusing("\(flag)\(file) cannot be read: \(error.reason)", code) }
    }

    static func readStandardInput() -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while bytes.count <= byteLimit {
            // The buffer is the array's own storage and its own count.
            let count = unsafe chunk.withUnsafeMutableBytes {
                unsafe Glibc.read(STDIN_FILENO, $0.baseAddress, $0.count)
            }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN {
                let interest = (descriptor: STDIN_FILENO, wantsInput: true, wantsSpace: false)
                _ = BlockingWait.wait(for: [interest], until: .never)
                continue
            }
            guard count > 0 else { break }
            bytes.append(contentsOf: chunk[..<count])
        }
        return trimmed(bytes)
    }

    static func trimmed(_ bytes: [UInt8]) -> [UInt8] {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0d).contains($0) }
        let start = bytes.drop(while: isBlank)
        let end = start.lastIndex { !isBlank($0) }.map { start.index(after: $0) } ?? start.startIndex
        return Array(start[..<end])
    }
}

enum Loopback {
    static func read(_ text: String) throws -> SocketAddress {
        guard !text.hasPrefix(ListenAddress.unixPrefix) else {
            throw ValidationError("an address and port are needed: 'serve' alone listens on a Unix socket.")
        }
        guard let address = SocketAddress(text) else {
            throw ValidationError("it is no numeric address and port, such as 127.0.0.1:8080.")
        }
        // The stand-in signs, and the page judges, for every caller.
        guard address.isLoopback else {
            throw ValidationError("it must be a loopback address: this is for this machine alone.")
        }
        return address
    }
}

/// A text that a person pasted with a token, or in its place.
extension [UInt8] {
    /// True if the text may be an access token and is no id token, whole or damaged: an id token has full stops, or
    /// begins as JSON does in base64url.
    var looksLikeAnAccessToken: Bool {
        [.accessToken, .gaming].contains(AccessTokenInspection.shape(span)) && !contains(UInt8(ascii: "."))
            && !starts(with: "eyJ".utf8)
    }

    /// The claim `cnf.jkt` of a token that is at least a JWS of JSON.
    var unprovenThumbprint: String? {
        guard let claims = unprovenClaims, let confirmation = claims.object("cnf") else { return nil }
        return claims.string("jkt", of: confirmation)
    }

    /// The claims of such a token; nil for other texts. They prove nothing: the service never reads them.
    var unprovenClaims: JSONObject? {
        guard let jws = JWSCompactSerialization(splitting: span) else { return nil }
        return JSONObject(span, jws.payload, limits: JSONLimits())
    }
}

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

    func moment() throws -> NumericDate { try at ?? Moment.now() }
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
