import LLTestSupport
import LimitedLogin
import Testing

@Suite("Signed requests, changed at random and signed anew")
struct SignedRequestMutationTests {
    /// The members of a request, and the refusal that each change causes.
    private struct Draft {
        var members: [(name: String, value: String)]
        /// The verdict on each known member's value; nil if it is good.
        private var faults: [String: Rejection.Code] = [:]
        private static let known = ["algorithm", "user_id", "issued_at", "expires"]

        init(isLogin: Bool) {
            members = [
                ("algorithm", #""HMAC-SHA256""#), ("expires", "1700003590"), ("issued_at", "1699999990"),
                ("user_id", #""218471""#),
            ]
            if isLogin { members.insert(("code", #""AQBx""#), at: 1) }
        }

        mutating func set(_ name: String, _ value: String, _ fault: Rejection.Code?) {
            faults[name] = fault
            guard let index = members.firstIndex(where: { $0.name == name }) else {
                return members.append((name, value))
            }
            members[index].value = value
        }

        mutating func remove(_ name: String) {
            members.removeAll { $0.name == name }
            faults[name] = nil
        }

        private func has(_ names: String...) -> Bool { members.contains { names.contains($0.name) } }

        /// The model's verdict; nil if the request is good.
        var expected: Rejection.Code? {
            if Set(members.map(\.name)).count < members.count { return .malformedRequest }
            if !has("algorithm") || faults["algorithm"] != nil { return .unsupportedAlgorithm }
            if has("code", "oauth_token", "access_token") { return .loginRequest }
            if has("page") { return .pageTabRequest }
            if has("player_id", "asid", "request_payload") { return .instantGameRequest }
            if !has("user_id") || faults["user_id"] == .invalidUser { return .invalidUser }
            if !has("issued_at") || faults["issued_at"] != nil { return .outOfTime }
            if faults["expires"] != nil { return .expired }
            return faults["user_id"]
        }

        /// The JSON text, with random escapes in the names and random white space.
        func text(_ random: inout RepeatableGenerator) -> String {
            let parts = members.map { name, value in
                let name = name.utf8.map { byte in
                    Int.random(in: 0..<16, using: &random) == 0
                        ? "\\u00" + String(byte, radix: 16) : String(UnicodeScalar(byte))
                }
                return "\"\(name.joined())\"\(["", " "].randomElement(using: &random) ?? ""):\(value)"
            }
            return "{" + parts.joined(separator: [",", ", ", ",\n"].randomElement(using: &random) ?? ",") + "}"
        }
    }

    private static let otherPurposes = [
        "code", "oauth_token", "access_token", "page", "player_id", "asid", "request_payload",
    ]
    private static let harmless = [
        "user", "app_data", "profile_id", "Code", "codes", "oauth", "pages", "player", "CODE", "oauth_token ", "",
    ]
    private static let anyValues = [
        #""x""#, "null", "0", "true", "[]", #"{"code":"x","page":{},"asid":1}"#, #"["code","oauth_token"]"#, #""""#,
    ]
    private static let users: [(String, Rejection.Code?)] = [
        (#""218471""#, nil), ("218471", nil), (#""18446744073709551615""#, nil), (#""2\u00318471""#, nil), ("1", nil),
        ("0", .noPerson), (#""0""#, .noPerson), (#""00""#, .invalidUser), (#""0218471""#, .invalidUser),
        (#""""#, .invalidUser), ("-0", .invalidUser), ("-1", .invalidUser), ("0.0", .invalidUser),
        ("1e3", .invalidUser),
        ("null", .invalidUser), (#""me""#, .invalidUser), (#""184467440737095516150""#, .invalidUser),
        (#""1 ""#, .invalidUser), (#"["1"]"#, .invalidUser),
    ]
    private static let moments: [(String, Rejection.Code?)] = [
        ("1700000000", nil), ("1700000060", nil), ("1699913600", nil), ("1.7e9", nil), ("1700000061", .outOfTime),
        ("1699913599", .outOfTime), ("0", .outOfTime), ("-1", .outOfTime), ("null", .outOfTime),
        (#""1700000000""#, .outOfTime), ("true", .outOfTime),
    ]
    private static let ends: [(String, Rejection.Code?)] = [
        ("1700000000", nil), ("0", nil), ("1699999940", nil), ("9007199254740992", nil), ("1699999939", .expired),
        ("1", .expired), ("-1", .expired), ("null", .expired), (#""1700003590""#, .expired), ("{}", .expired),
    ]
    private static let algorithms: [(String, Rejection.Code?)] = [
        (#""HMAC-SHA256""#, nil), (#""hmac-sha256""#, nil), (#""none""#, .unsupportedAlgorithm),
        (#""HMAC-SHA1""#, .unsupportedAlgorithm), ("null", .unsupportedAlgorithm), (#""""#, .unsupportedAlgorithm),
    ]

    private static func change(_ draft: inout Draft, _ random: inout RepeatableGenerator) {
        func any<Element>(_ list: [Element]) -> Element { list[Int.random(in: list.indices, using: &random)] }
        switch Int.random(in: 0..<10, using: &random) {
        case 0, 1: draft.members.shuffle(using: &random)
        case 2: draft.members.append((any(harmless), any(anyValues)))
        case 3:
            let place = Int.random(in: 0...draft.members.count, using: &random)
            draft.members.insert((any(otherPurposes), any(anyValues)), at: place)
        case 4: draft.remove(any(["algorithm", "user_id", "issued_at", "expires", "code"]))
        case 5, 6:
            let (value, fault) = any(users)
            draft.set("user_id", value, fault)
        case 7:
            let (value, fault) = any(moments)
            draft.set("issued_at", value, fault)
        case 8:
            let (value, fault) = any(ends)
            draft.set("expires", value, fault)
        default:
            let (value, fault) = any(algorithms)
            draft.set("algorithm", value, fault)
        }
    }

    @Test("10,000 changed callbacks and logins, signed anew, get the model's verdict")
    func mutations() throws {
        var random = RepeatableGenerator(seed: 0x51_6E_ED)
        var verdicts: [String: Int] = [:]
        for number in 0..<10_000 {
            var draft = Draft(isLogin: number.isMultiple(of: 2))
            for _ in 0..<Int.random(in: 1...4, using: &random) { Self.change(&draft, &random) }
            let payload = draft.text(&random)
            let request = try TestSignedRequest.make(payload)
            let rejection = Login.rejection {
                try SignedRequest(verifying: request, secrets: TestSignedRequest.secrets, now: Login.sharedNow)
            }
            try #require(rejection?.code == draft.expected, "\(payload)")
            verdicts[rejection?.description ?? "good", default: 0] += 1
        }
        // Every verdict occurs often enough.
        #expect(verdicts.count == 10 && verdicts.values.allSatisfy { $0 >= 50 }, "\(verdicts)")
    }
}
