internal import ArgumentParser
internal import Glibc
internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LLStandIn
internal import LimitedLogin

/// Gets the token to judge, without the white space around it.
enum TokenInput {
    /// One and a half times the greatest token: enough to tell that a token is too long.
    static let byteLimit = 49_152

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
            throw Exit.refusing("\(option)\(file) cannot be read: \(error.reason)", unreadable)
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
struct PastedText {
    let bytes: [UInt8]

    /// True if the text may be an access token and is no id token, whole or damaged: an id token has full stops, or
    /// begins as JSON does in base64url.
    var looksLikeAnAccessToken: Bool {
        [.accessToken, .gaming].contains(AccessTokenInspection.shape(bytes.span)) && !bytes.contains(UInt8(ascii: "."))
            && !bytes.starts(with: Array("eyJ".utf8))
    }

    /// The claim `cnf.jkt` of a token that is at least a JWS of JSON.
    var unprovenThumbprint: String? {
        guard let claims = JSONObject(unprovenPayload), let confirmation = claims.object("cnf") else { return nil }
        return claims.string("jkt", of: confirmation)
    }

    /// The claims of such a token as a JSON object; empty for other texts. They prove nothing: the service never reads them.
    var unprovenPayload: [UInt8] {
        var payload: [UInt8] = []
        guard let jws = try? JWSCompactSerialization(splitting: bytes.span),
            Base64URL.decode(bytes.span, jws.payload, into: &payload),
            JSONObject(payload) != nil
        else { return [] }
        return payload
    }
}
