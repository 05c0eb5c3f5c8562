internal import ArgumentParser
internal import Glibc
internal import LLBytes
internal import LLJOSE
internal import LLSockets
internal import LLStandIn
internal import LimitedLogin

/// Gets the token to judge, without the white space around it.
enum TokenInput {
    /// One and a half times the greatest token: enough to tell that a token is too long.
    static let byteLimit = 49_152

    /// The token from the place that the command line names.
    static func read(argument: String?, file: String?) throws -> [UInt8] {
        if let argument { return argument == "-" ? readStandardInput() : Array(argument.utf8) }
        return try file.map { trimmed(try contents(of: $0, unreadable: Exit.verifyUsage)) } ?? []
    }

    /// The bytes of a file; if it cannot be read, a line on standard error says so.
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

/// Reads the address of a listener that only this machine reaches.
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
struct PastedText {
    let bytes: [UInt8]

    /// True if the text may be an access token and is no id token, whole or damaged: an id token has full stops, or
    /// begins as JSON does in base64url.
    var looksLikeAnAccessToken: Bool {
        [.accessToken, .gaming].contains(AccessTokenInspection.shape(bytes.span)) && !bytes.contains(UInt8(ascii: "."))
            && !bytes.starts(with: Array("eyJ".utf8))
    }

    /// The remedy for a copying mistake; nil if none is found.
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

    private var unprovenClaims: JSONObject? { JSONObject(unprovenPayload) }

    /// The claims of such a token as a JSON object; empty for other texts.
    ///
    /// They prove nothing and only hint at a token's origin; the service never reads them.
    var unprovenPayload: [UInt8] {
        var payload: [UInt8] = []
        guard let jws = try? JWSCompactSerialization(splitting: bytes.span),
            Base64URL.decode(bytes.span, jws.payload, into: &payload),
            JSONObject(payload) != nil
        else { return [] }
        return payload
    }
}
