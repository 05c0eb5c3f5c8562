import LLBytes
import LLJOSE

@testable import LLStores
@testable import LimitedLogin

/// Takes any text; only the fixture's own nonce may be recognised as issued.
func fuzzNonce(_ input: [UInt8]) {
    let fixture = NonceFixture.shared
    let facts = fixture.issuer.recognize(input.span, appID: fixture.app.span)
    require((facts != nil) == (input == fixture.nonce), "nothing is recognised that was not issued")
    // The input as the bytes of a nonce, so that only the tag can refuse it.
    for text in [Array(Base64URL.encode(input).utf8), Array(Hexadecimal.encode(input).utf8)] {
        require(
            text == fixture.nonce || fixture.issuer.recognize(text.span, appID: fixture.app.span) == nil,
            "no bytes are a nonce without their tag"
        )
    }
    // The input as an app.
    let other = fixture.issuer.recognize(fixture.nonce.span, appID: input.span)
    require((other != nil) == (input == fixture.app), "a nonce is one app's")
    let known = try? NonceSecret(text: String(decoding: input, as: UTF8.self))
    if let known { require("\(known)".utf8.count < 30, "a secret does not show itself") }
    require(OpenSSLError.isQueueEmpty, "the error queue is empty")
}

/// Reads any bytes of a Redis server, whole and cut in two: the answers must be the same, and bounded.
func fuzzRedis(_ input: [UInt8]) {
    guard let cut = input.first else { return }
    let bytes = Array(input.dropFirst())
    let whole = answers([bytes])
    let place = bytes.isEmpty ? 0 : Int(cut) % bytes.count
    require(answers([Array(bytes[..<place]), Array(bytes[place...])]).elementsEqual(whole), "the cut does not matter")
    let text = String(decoding: bytes, as: UTF8.self)
    if let facts = try? RedisServerFacts(info: text) {
        require((1...129).contains(facts.identity.utf8.count), "an identity is short")
    }
    if let url = try? ReplayStoreURL(parsing: text) {
        require(!url.shown.utf8.contains(UInt8(ascii: "@")), "what is secret is not shown")
        require((try? ReplayStoreURL(parsing: url.shown))?.host == url.host, "what is shown is an address")
    }
    var command: [UInt8] = []
    RESPCommand.append([bytes, [cut]], to: &command)
    // A command has the form of an answer: an array of strings.
    require(answers([command]) == [.array([.string(bytes), .string([cut])])], "a command reads back")
}

private func answers(_ pieces: [[UInt8]]) -> [RedisReply] {
    var reader = RESPReader()
    var replies: [RedisReply] = []
    do {
        for piece in pieces {
            reader.feed(piece, count: piece.count)
            while let reply = try reader.next() {
                require(reply.size <= RESPReader.byteLimit, "an answer is no longer than its bytes")
                replies.append(reply)
            }
            require(reader.waitingCount <= RESPReader.byteLimit, "what waits is bounded")
        }
    } catch {
        return replies
    }
    return replies
}

extension RedisReply {
    /// The number of bytes in the reply, plus one for each element.
    fileprivate var size: Int {
        switch self {
        case .status(let text): text.utf8.count / 3
        case .error(let code): code.utf8.count
        case .redirect, .integer, .null: 1
        case .string(let bytes): bytes.count
        case .array(let elements): elements.reduce(elements.count) { $0 + $1.size }
        }
    }
}

/// An issuer with a random secret, and one of its nonces.
private struct NonceFixture {
    static let shared = NonceFixture()

    let issuer: NonceIssuer
    let app = Array("1234567890123456".utf8)
    let nonce: [UInt8]

    private init() {
        guard let random = try? RandomBytes.make(count: 32), let secret = try? NonceSecret(bytes: random) else {
            fatalError("no secret")
        }
        issuer = NonceIssuer(secret: secret)
        let issued = issuer.issue(
            appID: String(decoding: app, as: UTF8.self),
            lifetime: .seconds(600),
            now: 1_700_000_000_000,
            randomBytes: [UInt8](0..<16)
        )
        guard let issued else { fatalError("no nonce") }
        nonce = Array(issued.nonce.value.utf8)
    }
}
