import LLBytes
import LLTestSupport
import LimitedLogin
import Testing

@Suite("The signed player info of Instant Games")
struct SignedPlayerInfoTests {
    private static let now = Login.sharedNow
    private static let issuedAt = Login.now - 10

    private static func verify(
        _ text: String,
        _ nonce: String? = TestPlayerInfo.nonce,
        skew: Int = 60
    ) throws -> SignedPlayerInfo {
        try SignedPlayerInfo(
            verifying: text,
            secrets: TestSignedRequest.secrets,
            expecting: try nonce.map { .nonce(try #require(Nonce($0))) },
            clockSkewSeconds: skew,
            now: now
        )
    }

    private static func code(_ text: String, _ nonce: String? = TestPlayerInfo.nonce) throws -> String? {
        do {
            _ = try verify(text, nonce)
            return nil
        } catch let rejection as SignedPlayerInfoRejection {
            return rejection.code.rawValue
        }
    }

    @Test("Good info gives its app, player, time and nonce, and an asid as such")
    func accepted() throws {
        let player = try Self.verify(TestPlayerInfo.make(issuedAt: Self.issuedAt))
        #expect(player.appID == "222" && player.playerID == TestPlayerInfo.player && player.appScopedID == nil)
        #expect(player.issuedAt.wholeSeconds == Self.issuedAt && player.nonce == TestPlayerInfo.nonce)
        let person = try Self.verify(TestPlayerInfo.make(issuedAt: Self.issuedAt, member: "asid"))
        #expect(person.appScopedID == TestPlayerInfo.player && person.playerID == nil)
    }

    @Test("Other spellings that Facebook may use are accepted")
    func shapes() throws {
        for payload in [
            #"{"request_payload":"n0NceOfThisGame42","player_id":"1","issued_at":1699999990,"algorithm":"hmac-sha256"}"#,
            #"{"algorithm":"HMAC-SHA256","issued_at":1699999990.5,"player_id":"1","request_payload":"n0NceOfThisGame42","x":[{"code":1}]}"#,
            #"{"\u0061lgorithm":"HMAC-SHA256","issued_at":1699999990,"player_id":"\u0031","request_payload":"\u006e0NceOfThisGame42"}"#,
        ] {
            #expect(try Self.verify(TestSignedRequest.make(payload)).playerID == "1", "\(payload)")
        }
    }

    @Test(
        "Info may be an hour old, or ahead by the skew",
        arguments: [(-3_600, true), (-3_601, false), (0, true), (60, true), (61, false)] as [(Int64, Bool)]
    )
    func times(offset: Int64, isAccepted: Bool) throws {
        let code = try Self.code(TestPlayerInfo.make(issuedAt: Login.now + offset))
        #expect(code == (isAccepted ? nil : "invalid_signed_player_info"))
    }

    @Test(
        "The info's own expiry counts too, with the skew; 0 means none",
        arguments: [(-60, true), (-61, false), (0, true), (3_600, true)] as [(Int64, Bool)]
    )
    func ownEnd(offset: Int64, isAccepted: Bool) throws {
        let expires = offset == 0 ? 0 : Login.now + offset
        let payload = #"{"algorithm":"HMAC-SHA256","issued_at":1699999990,"player_id":"1","#
        let rest = #""request_payload":"n0NceOfThisGame42","expires":"#
        let code = try Self.code(TestSignedRequest.make("\(payload)\(rest)\(expires)}"))
        #expect(code == (isAccepted ? nil : "invalid_signed_player_info"))
    }

    @Test("Without an expectation the nonce is neither compared nor returned")
    func unbound() throws {
        let player = try Self.verify(TestPlayerInfo.make(issuedAt: Self.issuedAt, nonce: ""), nil)
        #expect(player.playerID == TestPlayerInfo.player && player.nonce == nil)
    }

    @Test("Each of more than thirty forgeries is refused with its code", arguments: PlayerInfoForgery.all)
    func refused(forgery: PlayerInfoForgery) throws {
        #expect(PlayerInfoForgery.all.count >= 30)
        #expect(try Self.code(forgery.text(Self.issuedAt)) == forgery.code)
    }

    @Test("An issued nonce must be this issuer's, for the app that signed, and not expired")
    func issued() throws {
        let issuer = try NonceIssuer(secret: "0123456789abcdef0123456789abcdef")
        func code(app: String = "222", age: Double = 5, secret: String = "0123456789abcdef0123456789abcdef") throws
            -> String?
        {
            let date = try #require(NumericDate(secondsSince1970: Double(Login.now) - age))
            let other = try NonceIssuer(secret: secret)
            let nonce = try #require(other.issue(appID: app, lifetimeSeconds: 60, now: date)).nonce.value
            let text = try TestPlayerInfo.make(issuedAt: Self.issuedAt, nonce: nonce)
            do throws(SignedPlayerInfoRejection) {
                let player = try SignedPlayerInfo(
                    verifying: text,
                    secrets: TestSignedRequest.secrets,
                    expecting: .issued(by: issuer),
                    now: Self.now
                )
                #expect(player.nonce == nonce)
                return nil
            } catch {
                return error.code.rawValue
            }
        }
        #expect(try code() == nil)
        #expect(try code(app: "111") == "nonce_not_issued")
        #expect(try code(secret: "fedcba9876543210fedcba9876543210") == "nonce_not_issued")
        #expect(try code(age: 60) == "nonce_expired")
    }

    /// The members of one payload, each with the refusal that it causes, or nil.
    private struct Draft {
        var members: [(name: String, json: String, fault: String?)] = [
            ("algorithm", #""HMAC-SHA256""#, nil), ("issued_at", "1699999990", nil), ("player_id", #""77""#, nil),
            ("request_payload", "\"\(TestPlayerInfo.nonce)\"", nil),
        ]

        mutating func set(_ name: String, _ json: String, _ fault: String?) {
            members.removeAll { $0.name == name }
            members.append((name, json, fault))
        }

        /// The model's code; nil if the info is good.
        var expected: String? {
            let names = members.map(\.name)
            let isFaulty = members.contains { $0.fault == "invalid_signed_player_info" }
            let others = ["code", "oauth_token", "access_token", "page", "user_id"]
            let players = names.count { $0 == "player_id" || $0 == "asid" }
            if isFaulty || Set(names).count < names.count || names.contains(where: others.contains) || players != 1
                || !names.contains("algorithm") || !names.contains("issued_at")
            {
                return "invalid_signed_player_info"
            }
            guard let nonce = members.first(where: { $0.name == "request_payload" }) else { return "nonce_mismatch" }
            return nonce.fault
        }

        var text: String { "{" + members.map { "\"\($0.name)\":\($0.json)" }.joined(separator: ",") + "}" }
    }

    private static let values: [(name: String, json: String, fault: String?)] = {
        let bad = "invalid_signed_player_info"
        return [
            ("algorithm", #""hmac-sha256""#, nil), ("algorithm", #""none""#, bad), ("algorithm", "null", bad),
            ("issued_at", "1700000060", nil), ("issued_at", "1699996400", nil), ("issued_at", "1700000061", bad),
            ("issued_at", "1699996399", bad), ("issued_at", #""1699999990""#, bad), ("issued_at", "-1", bad),
            ("player_id", #""18446744073709551615""#, nil), ("player_id", "77", bad), ("player_id", #""0""#, bad),
            ("player_id", #""""#, bad), ("player_id", #""077""#, bad), ("player_id", "null", bad),
            ("asid", #""77""#, nil), ("asid", "77", bad), ("asid", #""x""#, bad),
            ("request_payload", #""n0NceOfThisGam\u006542""#, nil), ("request_payload", #""x""#, "nonce_mismatch"),
            ("request_payload", "null", "nonce_mismatch"), ("request_payload", #""""#, "nonce_mismatch"),
            ("code", #""x""#, nil), ("oauth_token", "null", nil), ("page", "{}", nil), ("user_id", #""1""#, nil),
            ("access_token", #""x""#, nil), ("user", #"{"code":1}"#, nil), ("Code", "1", nil), ("", "[]", nil),
        ]
    }()

    @Test(
        "10,000 changed payloads get the model's verdict if signed anew, and are refused with one bit changed"
    )
    func mutations() throws {
        var random = RepeatableGenerator(seed: 0x91_A7_E2)
        var verdicts: [String: Int] = [:]
        for _ in 0..<10_000 {
            var draft = Draft()
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let value = Self.values[Int.random(in: Self.values.indices, using: &random)]
                switch Int.random(in: 0..<8, using: &random) {
                case 0: draft.members.append(value)
                case 1: draft.members.removeAll { $0.name == value.name }
                case 2: draft.members.shuffle(using: &random)
                default: draft.set(value.name, value.json, value.fault)
                }
            }
            let text = try TestSignedRequest.make(draft.text)
            let code = try Self.code(text)
            try #require(code == draft.expected, "\(draft.text)")
            verdicts[code ?? "good", default: 0] += 1
            var bytes = Array(text.utf8)
            let place = Int.random(in: bytes.indices, using: &random)
            bytes[place] ^= 1 << UInt8(Int.random(in: 0..<7, using: &random))
            #expect(try Self.code(String(decoding: bytes, as: UTF8.self)) == "invalid_signed_player_info")
        }
        #expect(verdicts.count == 3 && verdicts.values.allSatisfy { $0 >= 200 }, "\(verdicts)")
    }
}
