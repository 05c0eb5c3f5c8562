import LLStandIn
import LLTestSupport

/// Makes good tokens and tokens with one or more faults: the same faults in every run, under fresh keys.
struct TokenGenerator {
    static let appID = "1234567890123456"
    static let nonce = "0B6F5C35-92C1-4E5C-9D0C-5B5F7A3C2D11"
    static let now: Int64 = 1_700_000_000

    private var numbers: RepeatableGenerator

    init(seed: UInt64) { numbers = RepeatableGenerator(seed: seed) }

    private mutating func next(below bound: Int) -> Int { Int(numbers.next() % UInt64(bound)) }

    private mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[next(below: elements.count)]
    }

    /// A signed token; about a third of them are good.
    mutating func makeSigned() throws -> String {
        var members = goodMembers()
        for _ in 0..<pick([0, 0, 1, 1, 1, 2]) { bend(&members) }
        if next(below: 3) == 0 { members = shuffled(members) }
        let minter = next(below: 12) == 0 ? StandInKeys.stranger : pick([StandInKeys.current, StandInKeys.previous])
        var payload = FacebookJSON.object(members)
        if next(below: 40) == 0 {
            payload = pick(["\u{FEFF}" + payload, payload + " ", " \n" + payload, payload + "x", "[]", ""])
        }
        return try minter.mint(header: Array(makeHeader(minter.keyID).utf8), payload: Array(payload.utf8))
    }

    /// The same token with one small change.
    mutating func makeMutant(of token: String) -> String {
        var bytes = Array(token.utf8)
        let offset = next(below: bytes.count)
        switch next(below: 6) {
        case 0: bytes[offset] = pick(Array("ABCxyz0189-_.=+/".utf8))
        case 1: bytes.remove(at: offset)
        case 2: bytes.insert(pick(Array("AQgw-_.=".utf8)), at: offset)
        case 3: bytes[bytes.count - 1] = pick(Array("AEIMQUYcgkosw048BCDFGH".utf8))
        case 4: bytes += pick([[0x3D], [0x41], [0x2E], [0x2E, 0x41]])
        default: bytes.removeLast(next(below: 20))
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private mutating func goodMembers() -> [FacebookJSON.Member] {
        var claims = MintedClaims(
            audience: Self.appID,
            subject: String(10_000 + next(below: 1_000_000)),
            nonce: Self.nonce,
            issuedAt: Self.now - Int64(next(below: 3000))
        )
        claims.issuer = pick(["https://www.facebook.com", "https://facebook.com"])
        claims.tokenID = "t\(next(below: 1_000_000))"
        if next(below: 2) == 0 { claims.email = pick(["a@b.c", "é@x.y", "😀@\"\\"]) }
        if next(below: 2) == 0 { claims.name = pick(["Jane", "Zoë", ""]) }
        if next(below: 3) == 0 { claims.friendIDs = pick([[], ["1"], ["1", "2"]]) }
        if next(below: 4) == 0 { claims.accessTokenHash = "aBcDeF" }
        return claims.members
    }

    private mutating func bend(_ members: inout [FacebookJSON.Member]) {
        let name = pick(["iss", "aud", "sub", "iat", "exp", "jti", "nonce", "nbf", "azp", "at_hash", "other"])
        let index = members.firstIndex { $0.name == name }
        switch next(below: 8) {
        case 0:
            if let index { members.remove(at: index) }
        case 1:
            if let index { members.insert(members[index], at: next(below: members.count)) }
        default:
            let json = value(for: name)
            if let index {
                members[index].json = json
            } else {
                members.append((name, json))
            }
        }
    }

    private mutating func value(for name: String) -> String {
        let anything = [
            "null", "true", "0", "-1", "1.5", "\"\"", "\"x\"", "[]", "{}", "[null]", "{\"a\":1,\"a\":2}", "1e400",
            "\"\\uD800\"",
            "\"é\"", "1e19", "NaN",
        ]
        if next(below: 3) == 0 { return pick(anything) }
        switch name {
        case "iss":
            return pick([
                "\"https:\\/\\/www.facebook.com\"", "\"https://www.facebook.com/\"", "\"https://www.facebook.co\"",
            ])
        case "aud", "azp":
            return pick([
                "\"\(Self.appID)\"", "[\"\(Self.appID)\"]", "[\"\(Self.appID)\",\"9\"]", "\"9\"", "[\"9\"]",
                "1234567890123456",
            ])
        case "sub", "jti": return pick(["\"1\"", "\"\\u0031\"", "\"\(String(repeating: "7", count: 256))\"", "7"])
        case "iat", "nbf", "exp":
            let offsets: [Int64] = [-3600, -61, -60, -59, -1, 0, 1, 59, 60, 61, 3600]
            return pick([
                String(Self.now + pick(offsets)), "\(Self.now + pick(offsets)).5", "1.7e9", "\"\(Self.now)\"",
                "9007199254740993",
            ])
        case "nonce":
            return pick(["\"\(Self.nonce)\"", "\"\(Self.nonce.lowercased())\"", "\"\\u0030\(Self.nonce.dropFirst())\""])
        default: return pick(anything)
        }
    }

    private mutating func makeHeader(_ keyID: String) -> String {
        let good = "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"\(keyID)\"}"
        guard next(below: 6) == 0 else { return good }
        return pick([
            "{\"alg\":\"none\",\"kid\":\"\(keyID)\"}", "{\"alg\":\"HS256\",\"kid\":\"\(keyID)\"}",
            "{\"alg\":\"RS256\",\"kid\":\"\(keyID)\"}", "{\"alg\":\"RS256\"}", "{\"alg\":\"RS256\",\"kid\":\"\"}",
            "{\"alg\":\"RS256\",\"kid\":7}", "{\"alg\":\"RS256\",\"kid\":\"nobody\"}",
            "{\"alg\":\"RS256\",\"typ\":\"at+jwt\",\"kid\":\"\(keyID)\"}",
            "{\"alg\":\"RS256\",\"typ\":\"jwt\",\"kid\":\"\(keyID)\"}",
            "{\"alg\":\"RS256\",\"crit\":[\"x\"],\"x\":1,\"kid\":\"\(keyID)\"}",
            "{\"alg\":\"RS256\",\"b64\":true,\"kid\":\"\(keyID)\"}",
            "{\"alg\":\"RS256\",\"cty\":\"JWT\",\"kid\":\"\(keyID)\"}",
            "{\"alg\":\"RS256\",\"alg\":\"RS256\",\"kid\":\"\(keyID)\"}",
            "{\"\\u0061lg\":\"RS256\",\"kid\":\"\(keyID)\"}",
            "{\"alg\":\"RS256\",\"jku\":\"http:\\/\\/127.0.0.1:1\",\"kid\":\"\(keyID)\"}",
            "[]", "{}", "", "{\"alg\":\"RS256\",}", " {\"alg\" : \"RS256\" , \"kid\":\"\(keyID)\"} ",
        ])
    }

    private mutating func shuffled(_ members: [FacebookJSON.Member]) -> [FacebookJSON.Member] {
        var members = members
        for index in members.indices.reversed() { members.swapAt(index, next(below: index + 1)) }
        return members
    }
}
