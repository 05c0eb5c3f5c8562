import Foundation
import LimitedLogin
import LimitedLoginTesting
import Testing

/// Tokens with claims mutated before signing: every signature is good, so only the claims decide.
///
/// `MUTATED_INPUTS` sets the number. Foundation's reader and a short copy of the rules judge each token again.
@Suite("Mutated claims under a good signature")
struct MutationTests {
    private static let now: Int64 = 1_700_000_000
    private static let base: [(name: String, json: String)] = [
        ("iss", "\"https:\\/\\/www.facebook.com\""), ("aud", "\"1234\""), ("sub", "\"218471\""),
        ("iat", "\(now - 10)"), ("exp", "\(now + 3_590)"), ("jti", "\"a.b\""), ("nonce", "\"n-1\""),
        ("name", "\"Jane Doe\""), ("user_birthday", "\"01/02/1990\""), ("user_age_range", "{\"min\":21}"),
    ]
    private static let hostile = [
        "null", "true", "0", "-1", "1e309", "1.7e9", "9007199254740993", "99999999999999999999", "\"\"", "\" n-1\"",
        "\"N-1\"",
        "\"n-1\\u0000\"", "\"\\u006e-1\"", "[]", "{}", "[\"1234\"]", "[\"1234\",\"5\"]", "[[\"1234\"]]", "\"1234 \"",
        "\"\\u0031234\"",
        "\"https:\\/\\/www.facebook.com\\/\"", "\"https://www.facebook.com\"", "\"http://www.facebook.com\"", "\"x\"",
        "\(now)", "\(now + 61)", "\(now - 61)", "\(now - 59)", "\"\(now)\"", "{\"min\":21}", "\"02/29\"",
    ]

    private static func text(_ members: [(name: String, json: String)]) -> String {
        "{" + members.map { "\"\($0.name)\":\($0.json)" }.joined(separator: ",") + "}"
    }

    /// A payload; `isGood` is true if the verifier must accept it.
    private static func payload(_ kind: Int, _ generator: inout some RandomNumberGenerator) -> (String, isGood: Bool) {
        var members = base
        switch kind {
        case 0:
            // Foundation cannot read a number beyond the range of a double, so 1e309 is left out.
            let values = hostile.filter { $0 != "1e309" }
            let name = "x\(Int.random(in: 0..<1_000, using: &generator))"
            members.append((name, values.randomElement(using: &generator) ?? ""))
            members.shuffle(using: &generator)
            return (text(members), true)
        case 1:
            let place = Int.random(in: 0..<members.count, using: &generator)
            members[place].json = hostile.randomElement(using: &generator) ?? ""
            if Bool.random(using: &generator) { members.append(base[Int.random(in: 0..<7, using: &generator)]) }
            return (text(members), false)
        default:
            var bytes = Array(text(members).utf8)
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                let place = Int.random(in: 0..<bytes.count, using: &generator)
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
                case 1: bytes.remove(at: place)
                default: bytes.insert(UInt8.random(in: 0x20..<0x7F, using: &generator), at: place)
                }
            }
            return (String(decoding: bytes, as: UTF8.self), false)
        }
    }

    /// True if Foundation's reader finds every claim that an accepted token needs, each of them once.
    private static func isAcceptable(_ payload: String) -> Bool {
        // Foundation's reader accepts repeated members, so the text is searched for a second `iss` … `nonce`.
        for (name, _) in base where payload.components(separatedBy: "\"\(name)\":").count > 2 { return false }
        guard let claims = try? JSONSerialization.jsonObject(with: Data(payload.utf8)) as? [String: Any] else {
            return false
        }
        let audience = claims["aud"] as? String ?? (claims["aud"] as? [String]).flatMap { $0.count == 1 ? $0[0] : nil }
        guard let end = (claims["exp"] as? NSNumber)?.doubleValue,
            let start = (claims["iat"] as? NSNumber)?.doubleValue,
            let subject = claims["sub"] as? String, let identity = claims["jti"] as? String
        else { return false }
        return VerificationPolicy.defaultIssuers.contains(claims["iss"] as? String ?? "") && audience == "1234"
            && Double(now) < end + 60 && start >= 0 && start <= Double(now) + 60 && !subject.isEmpty
            && !identity.isEmpty
            && claims["nonce"] as? String == "n-1"
    }

    @Test("No verdict is wrong, and nothing traps")
    func verdicts() async throws {
        let count = ProcessInfo.processInfo.environment["MUTATED_INPUTS"].flatMap { Int($0) } ?? 2_000
        let key = try TestKey()
        let verifier = LoginVerifier(
            policy: try VerificationPolicy(appIDs: ["1234"]),
            keys: FixedKeys(key),
            clock: { Double(Self.now) }
        )
        let header = "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"\(key.keyID)\"}"
        let accepted = try await withThrowingTaskGroup(of: Int.self) { group in
            for task in 0..<2 {
                group.addTask {
                    var generator = SystemRandomNumberGenerator()
                    var accepted = 0
                    for number in stride(from: task, to: count, by: 2) {
                        let (payload, isGood) = Self.payload(number / 2 % 3, &generator)
                        let token = try key.token(header: header, payload: payload)
                        do {
                            _ = try await verifier.verify(token, nonce: "n-1")
                            accepted += 1
                            #expect(Self.isAcceptable(payload), "accepted: \(payload)")
                        } catch let rejection as Rejection {
                            #expect(!isGood && rejection.code != .invalidSignature, "\(rejection): \(payload)")
                        }
                    }
                    return accepted
                }
            }
            return try await group.reduce(0, +)
        }
        print("\(count) mutated tokens, \(accepted) accepted")
        #expect(accepted >= count / 4)
    }
}
