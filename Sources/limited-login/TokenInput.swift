internal import ArgumentParser
internal import Bytes
internal import FoundationEssentials
internal import Glibc
internal import JOSE
internal import LimitedLogin
internal import OpenSSL
internal import Sockets
internal import StandInIssuer

/// Gets the token to judge, without the white space around it.
enum TokenInput {
    /// Four times the greatest token: enough to tell that it is too long.
    static let byteLimit = 32_768

    /// The token from where the command line says.
    static func read(argument: String?, file: String?) throws -> [UInt8] {
        if let argument { return argument == "-" ? readStandardInput() : Array(argument.utf8) }
        return try file.map { trimmed(try contents(of: $0, unreadable: Exit.verifyUsage)) } ?? []
    }

    /// The bytes of a file; where it cannot be read, a line on standard error says so.
    static func contents(
        of file: String,
        limit: Int = byteLimit,
        option: String = "",
        unreadable: ExitCode
    ) throws -> [UInt8] {
        do throws(FileContents.Failure) {
            return try FileContents.read(path: file, limit: limit, allowingPipe: true)
        } catch {
            StandardError.write("limited-login: \(option)\(file) cannot be read: \(error.reason)")
            throw unreadable
        }
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

/// Gets the address of a listener that only this machine reaches.
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

/// What people paste along with a token, or in its place.
struct PastedText {
    let bytes: [UInt8]

    /// Whether it may be an access token, and is no id token, whole or damaged: those have full stops, or begin as JSON does
    /// in base64url.
    var looksLikeAnAccessToken: Bool {
        AccessTokenInspection.shape(bytes.span) == .accessToken && !bytes.contains(UInt8(ascii: "."))
            && !bytes.starts(with: Array("eyJ".utf8))
    }

    /// The way out of a mistake in copying; nil where none is seen.
    var cure: String? {
        guard let first = bytes.first else { return nil }
        let text = String(decoding: bytes.prefix(64), as: UTF8.self)
        if text.lowercased().hasPrefix("bearer ") || text.lowercased().hasPrefix("authorization:") {
            return "Leave out what stands before the token: it begins with eyJ."
        }
        if first == UInt8(ascii: "\"") || first == UInt8(ascii: "'") {
            return "Take away the quotation marks around the token."
        }
        if text.lowercased().hasPrefix("optional(") {
            return "The app printed an optional: unwrap AuthenticationToken.current?.tokenString before it is sent."
        }
        if ["/", "./", "../", "~/"].contains(where: text.hasPrefix) {
            return "Pass the token itself, or name its file with --token-file."
        }
        if first == UInt8(ascii: "{") { return "Pass the token itself, which begins with eyJ, not the JSON around it." }
        if bytes.contains(where: { $0 <= 0x20 }) {
            return "Join the lines: the token is one word, and this text has white space within."
        }
        if bytes.contains("%2E".utf8) || bytes.contains("%2e".utf8) {
            return "Undo the percent-encoding: %2E stands for a full stop."
        }
        if bytes.contains(where: "=+/".utf8.contains) {
            return "Somebody encoded this anew as plain base64: pass the token on unchanged, in base64url without '='."
        }
        if bytes.contains("...".utf8) || bytes.contains("…".utf8) {
            return "Copy the whole token: what shows it has cut out its middle."
        }
        return nil
    }

    /// The claim `iss` of a token that is at least a JWS of JSON.
    var unprovenIssuer: String? { unprovenClaims?.string("iss") }

    /// The claim `cnf.jkt` of such a token.
    var unprovenThumbprint: String? {
        guard let claims = unprovenClaims, let confirmation = claims.object("cnf") else { return nil }
        return claims.string("jkt", of: confirmation)
    }

    /// They prove nothing and tell where a token may come from; the service never looks into them.
    private var unprovenClaims: JSONObject? {
        guard let jws = try? JWSCompactSerialization(splitting: bytes.span) else { return nil }
        var payload: [UInt8] = []
        guard Base64URL.decode(bytes.span, jws.payload, into: &payload) else { return nil }
        return JSONObject(payload)
    }
}

/// Moments as people read them: the local time, and how long ago or ahead.
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
        // All are locals of this call. A year that a tm cannot hold is nil; any other takes 35 bytes at most.
        guard unsafe localtime_r(&seconds, &parts) != nil else { return "\(moment.wholeSeconds) s since 1970" }
        let count = unsafe text.withUnsafeMutableBytes { buffer in
            unsafe strftime(buffer.baseAddress, buffer.count, "%Y-%m-%d %H:%M:%S %z", &parts)
        }
        return String(decoding: text[..<count], as: UTF8.self)
    }
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
