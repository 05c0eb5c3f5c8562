internal import FoundationEssentials
internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LLService
internal import LimitedLogin

/// The requests to work on, split into their parts once so that each stage can run by itself.
struct Inputs {
    /// Whole HTTP requests.
    private(set) var requests: [[UInt8]] = []
    /// A gateway's requests about the same tokens.
    private(set) var gatewayRequests: [[UInt8]] = []
    /// The exchanges of the same tokens, by a caller with a key.
    private(set) var exchangeRequests: [[UInt8]] = []
    /// The bodies of the requests.
    private(set) var bodies: [[UInt8]] = []
    /// The id tokens in the bodies.
    private(set) var tokens: [[UInt8]] = []
    /// The nonces beside the id tokens.
    private(set) var nonces: [[UInt8]] = []
    /// The decoded parts of the tokens.
    private(set) var headers: [[UInt8]] = []
    private(set) var payloads: [[UInt8]] = []
    private(set) var signatures: [[UInt8]] = []

    /// Reads at most `most` requests from a file for the load generator: each request follows its length in 32 bits.
    init(_ path: String, atMost most: Int) throws {
        let file = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        var offset = 0
        while offset + 4 <= file.count, requests.count < most {
            let count = (0..<4).reduce(0) { $0 | Int(file[offset + $1]) << (8 * $1) }
            try add(Array(file[offset + 4..<min(offset + 4 + count, file.count)]))
            offset += 4 + count
        }
        guard !requests.isEmpty else { throw Failure("\(path) holds no request") }
    }

    private mutating func add(_ request: [UInt8]) throws {
        var parser = RequestParser(limits: HTTPLimits())
        var head = RequestHead()
        guard try parser.parse(request.span, into: &head) else { throw Failure("no HTTP request") }
        let body = Array(request[head.byteCount...])
        var document = JSONDocument(limits: .ofRequest)
        let login = try LoginRequest(body.span, with: &document)
        let token = login.token
        guard let nonce = login.expectation.binding.nonce else { throw Failure("no nonce") }
        guard let jws = JWSCompactSerialization(splitting: token.span) else { throw Failure("no JWS") }
        requests.append(request)
        let gatewayHead = Array("GET /auth HTTP/1.1\r\nHost: login.example.com\r\nAuthorization: Bearer ".utf8)
        gatewayRequests.append(gatewayHead + token + Array("\r\n\r\n".utf8))
        exchangeRequests.append(Self.exchange(token, nonce))
        bodies.append(body)
        tokens.append(token)
        nonces.append(nonce)
        headers.append(try Self.decoded(token, jws.header))
        payloads.append(try Self.decoded(token, jws.payload))
        signatures.append(try Self.decoded(token, jws.signature))
    }

    private static func exchange(_ token: [UInt8], _ nonce: [UInt8]) -> [UInt8] {
        let type = "urn%3Aietf%3Aparams%3Aoauth%3A"
        var form = Array(
            "grant_type=\(type)grant-type%3Atoken-exchange&subject_token_type=\(type)token-type%3Aid_token".utf8
        )
        form += Array("&subject_token=".utf8) + token + Array("&nonce=".utf8) + nonce
        let head = """
            POST /token HTTP/1.1\r\nHost: login.example.com\r\nX-Api-Key: \(Service.callerKey)\r\n\
            Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(form.count)\r\n\r\n
            """
        return Array(head.utf8) + form
    }

    private static func decoded(_ token: [UInt8], _ range: Range<Int>) throws -> [UInt8] {
        var bytes: [UInt8] = []
        guard Base64URL.decode(token.span, range, into: &bytes) else { throw Failure("no base64url") }
        return bytes
    }
}

/// The reason why nothing could be measured.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
