import LLHTTP
import LLStandIn
import LLStores
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService

@Suite("/auth with DPoP (RFC 9449)", .live)
struct DPoPRouteTests {
    private static let challenge = #"DPoP error="invalid_dpop_proof", algs="ES256""#
    /// The fields of a gateway about a request to ``Proof/url``.
    private static let forwarded = [
        "X-Forwarded-Method: GET", "X-Forwarded-Proto: https", "X-Forwarded-Host: api.example.com",
        "X-Forwarded-Uri: /login/me?x=1",
    ]

    private static func service(_ dpop: DPoPDemand = .ifSent, origin: GatewayOrigin? = nil, store: ReplayStore? = nil)
        async throws -> InProcessService
    {
        try await InProcessService(gateway: GatewaySettings(dpop: dpop, origin: origin), replayStore: store)
    }

    /// A token bound to a device.
    private static func token(_ minter: ProofMinter = Proof.key) throws -> String {
        var claims = Tokens.claims()
        claims.confirmationThumbprint = try minter.thumbprint()
        return try Tokens.mint(claims)
    }

    private static func proof(_ token: String, _ name: String = "j-1") throws -> Proof {
        try Proof(token: token, now: WallClock.unixSeconds(), tokenID: name)
    }

    private static func fields(_ token: String, _ proof: String, _ forwarded: [String] = forwarded) -> [String] {
        ["Authorization: DPoP \(token)", "DPoP: \(proof)"] + forwarded
    }

    @Test("A bound token with a proof of its device passes, under the default settings")
    func accepted() async throws {
        let service = try await Self.service()
        let token = try Self.token()
        for (name, scheme) in [("a", "DPoP"), ("b", "dpop"), ("c", "DPOP ")] {
            var fields = Self.fields(token, try Self.proof(token, name).make())
            fields[0] = "Authorization: \(scheme) \(token)"
            let answer = try service.answer("POST", "/auth/orders", fields: fields)
            #expect(answer.status == 200 && answer["x-auth-subject"] == "2954873201847263")
            #expect(answer["cache-control"] == "no-store")
        }
    }

    @Test("There must be exactly one DPoP field (1)")
    func oneField() async throws {
        let service = try await Self.service()
        let token = try Self.token()
        let proof = try Self.proof(token).make()
        for (fields, sentence) in [
            ([], "has no DPoP proof"), (["DPoP: \(proof)", "DPoP: \(proof)"], "more than one DPoP field"),
            (["DPoP: \(proof)", "dpop:"], "more than one DPoP field"), (["DPoP: \(proof), \(proof)"], "not a JWT"),
            (["DPoP:"], "not a JWT"), (["D_P: \(proof)"], "has no DPoP proof"),
        ] {
            let fields = ["Authorization: DPoP \(token)"] + fields + Self.forwarded
            let answer = try service.answer("GET", "/auth", fields: fields)
            #expect(answer.code == "invalid_dpop_proof" && answer["www-authenticate"] == Self.challenge)
            #expect(answer.detail.contains(sentence), "\(answer.detail)")
        }
    }

    @Test("A proof is accepted once, and its jti counts for its own key alone")
    func once() async throws {
        let service = try await Self.service()
        let token = try Self.token()
        let fields = Self.fields(token, try Self.proof(token, "same").make())
        #expect(try service.answer("GET", "/auth", fields: fields).status == 200)
        let again = try service.answer("GET", "/auth", fields: fields)
        #expect(again.status == 401 && again.code == "invalid_dpop_proof")
        #expect(again["www-authenticate"] == Self.challenge && again["x-auth-subject"] == nil)
        #expect(again.detail.contains("jti was seen before"))
        let other = try Self.token(Proof.stranger)
        var proof = try Self.proof(other, "same")
        proof.minter = Proof.stranger
        proof.set(header: "jwk", Proof.stranger.jsonWebKey)
        #expect(try service.answer("GET", "/auth", fields: Self.fields(other, proof.make())).status == 200)
        #expect(try service.answer("GET", "/auth", fields: Self.fields(token, Self.proof(token).make())).status == 200)
    }

    @Test("A request that is refused for another reason does not use up its proof")
    func otherwiseGood() async throws {
        let service = try await Self.service()
        let token = try Self.token()
        let fields = Self.fields(token, try Self.proof(token).make())
        let demanding = try service.answer("GET", "/auth?permissions=user_birthday", fields: fields)
        #expect(demanding.status == 403)
        #expect(demanding["www-authenticate"] == #"DPoP error="insufficient_scope", scope="user_birthday""#)
        #expect(try service.answer("GET", "/auth?app_id=42", fields: fields).code == "invalid_audience")
        #expect(try service.answer("GET", "/auth?x=1", fields: fields).status == 400)
        #expect(try service.answer("GET", "/auth", fields: fields).status == 200)
    }

    @Test("A token without a readable bound key fits no proof; the thumbprint may be spelt with escapes")
    func unbound() async throws {
        let service = try await Self.service()
        let thumbprint = try Proof.key.thumbprint()
        let escaped = String(thumbprint.dropLast()) + "\\u00" + String(thumbprint.utf8.last ?? 0, radix: 16)
        for (confirmation, status) in [
            (nil, 401), ("null", 401), ("{}", 401), (#"{"jkt":5}"#, 401), (#"{"jkt":""}"#, 401),
            (#"{"x5t#S256":"\#(thumbprint)"}"#, 401), (#""\#(thumbprint)""#, 401), (#"{"jkt":"\#(thumbprint)"}"#, 200),
            (#"{"jkt":"\#(escaped)"}"#, 200),
        ] as [(String?, Int)] {
            let token = try Self.token(confirmation: confirmation)
            let proof = try Self.proof(token, "\(confirmation ?? "-")".filter(\.isLetter)).make()
            let answer = try service.answer("GET", "/auth", fields: Self.fields(token, proof))
            #expect(answer.status == status, "\(confirmation ?? "")")
            #expect(answer["www-authenticate"] == (status == 200 ? nil : Self.challenge))
        }
        // The refusal mentions no key, because the token has none.
        let fields = ["Authorization: DPoP \(try Self.token(confirmation: nil))"] + Self.forwarded
        #expect(try service.answer("GET", "/auth", fields: fields).detail.contains("bound to no key"))
    }

    /// A token with this JSON as `cnf`.
    private static func token(confirmation: String?) throws -> String {
        let members = Tokens.claims().members + (confirmation.map { [("cnf", $0)] } ?? [])
        return try StandInKeys.current.mint(members: members)
    }

    @Test("A bound Bearer passes if no proof is there or required; an odd cnf never", arguments: DPoPDemand.allCases)
    func bearer(dpop: DPoPDemand) async throws {
        let service = try await Self.service(dpop)
        let bound = try Self.token()
        let good = try Self.proof(bound).make()
        let unreadable = try ["{}", "null", "5", #""x""#, #"{"kid":"k"}"#, "[]"].map {
            try Self.token(confirmation: $0)
        }
        for proofs in [[], ["DPoP: \(good)"], ["DPoP: x"], ["dpop:"], ["DPoP: x", "DPoP: y"]] {
            // A token that passes is remembered the second time.
            for token in [bound, bound] + unreadable + unreadable {
                let fields = ["Authorization: Bearer \(token)"] + proofs + Self.forwarded
                let answer = try service.answer("GET", "/auth", fields: fields)
                if token == bound, dpop == .ignored || dpop == .ifSent && proofs.isEmpty {
                    #expect(answer.status == 200)
                    continue
                }
                #expect(answer.status == 401 && answer.code == "invalid_dpop_proof", "\(proofs)")
                #expect(answer["www-authenticate"] == Self.challenge && answer["x-auth-subject"] == nil)
                #expect(answer.detail.contains("bound to a key") || answer.detail.contains("cnf"), "\(answer.detail)")
            }
        }
        // Nothing was used up, and a token without a bound key needs no proof.
        let proven = try service.answer("GET", "/auth", fields: Self.fields(bound, good))
        #expect(proven.status == (dpop == .ignored ? 401 : 200))
        let plain = ["Authorization: Bearer \(try Tokens.mint(Tokens.claims()))", "DPoP: x"]
        #expect(try service.answer("GET", "/auth", fields: plain).status == 200)
    }

    @Test("cnf.jkt is exported only for a client that proved its key", arguments: DPoPDemand.allCases)
    func toldKey(dpop: DPoPDemand) async throws {
        let fields = try ["X-Auth-Subject=sub", "X-Auth-Key=cnf.jkt", "X-Auth-Email=email"].map { try AuthField($0) }
        let service = try await InProcessService(gateway: GatewaySettings(dpop: dpop, fields: fields))
        let token = try Self.token()
        for number in 0..<2 where dpop != .ignored {
            let proof = try Self.proof(token, "j-\(number)").make()
            let proven = try service.answer("GET", "/auth", fields: Self.fields(token, proof))
            #expect(try proven.status == 200 && proven["x-auth-key"] == Proof.key.thumbprint())
        }
        // The token is remembered the second time.
        for _ in 0..<2 where dpop != .requiredIfBound {
            let plain = try service.answer("GET", "/auth", fields: ["Authorization: Bearer \(token)"])
            #expect(plain.status == 200 && plain["x-auth-subject"] != nil && plain["x-auth-key"] == nil)
        }
    }

    @Test("With dpop: ignored the scheme DPoP brings no token")
    func ignored() async throws {
        let service = try await Self.service(.ignored)
        let token = try Self.token()
        let answer = try service.answer("GET", "/auth", fields: Self.fields(token, try Self.proof(token).make()))
        #expect(answer.status == 401 && answer.code == "missing_token")
        #expect(answer["www-authenticate"] == #"Bearer realm="limited-login""#)
    }

    @Test("A field that the gateway leaves out or repeats is named, and no new proof is asked for", arguments: 0..<4)
    func forwardedFields(index: Int) async throws {
        let service = try await Self.service()
        let token = try Self.token()
        let proof = try Self.proof(token).make()
        let name = try #require(Self.forwarded[index].split(separator: ":").first)
        var missing = Self.forwarded
        missing.remove(at: index)
        for fields in [
            missing, missing + ["\(name):"], Self.forwarded + [Self.forwarded[index]], Self.forwarded + ["\(name): x"],
            missing + ["\(name.replacing("-", with: "_")): \(Self.forwarded[index].split(separator: " ")[1])"],
        ] {
            let answer = try service.answer("GET", "/auth", fields: Self.fields(token, proof, fields))
            #expect(answer.status == 400 && answer.code == "invalid_request" && answer["www-authenticate"] == nil)
            #expect(answer.text.contains(name.lowercased()) && answer.text.contains("config/gateways"))
        }
        #expect(try service.answer("GET", "/auth", fields: Self.fields(token, proof)).status == 200)
    }

    @Test(
        "The proof must be for the client's request, as the gateway reports it",
        arguments: [
            (["GET", "HTTPS", "API.Example.com:443", "/login/me#x"], true),
            (["POST", "https", "api.example.com", "/login/me"], false),
            (["get", "https", "api.example.com", "/login/me"], false),
            (["GET", "http", "api.example.com", "/login/me"], false),
            (["GET", "https", "evil.example", "/login/me"], false),
            (["GET", "https", "api.example.com", "/login"], false),
            (["GET", "https", "api.example.com/login", "/me"], false),
            (["GET", "https, http", "api.example.com", "/login/me"], false),
        ]
    )
    func clientsRequest(parts: [String], isAccepted: Bool) async throws {
        let service = try await Self.service()
        let token = try Self.token()
        let names = ["Method", "Proto", "Host", "Uri"]
        let forwarded = zip(names, parts).map { "X-Forwarded-\($0): \($1)" }
        let fields = Self.fields(token, try Self.proof(token).make(), forwarded)
        let answer = try service.answer("GET", "/auth", fields: fields)
        let isGatewaysFault = parts[1].contains(",") || parts[2].contains("/")
        #expect(answer.status == (isAccepted ? 200 : isGatewaysFault ? 400 : 401))
        #expect(!isGatewaysFault || answer["www-authenticate"] == nil && answer.text.contains("gateway_origin"))
    }

    @Test("gateway_origin replaces the scheme and host of the forwarded fields")
    func origin() async throws {
        let service = try await Self.service(origin: GatewayOrigin("https://api.example.com"))
        let token = try Self.token()
        let told = [Self.forwarded[0], Self.forwarded[3]]
        for (name, more) in [("a", []), ("b", ["X-Forwarded-Proto: http", "X-Forwarded-Host: evil.example"])] {
            let proof = try Self.proof(token, name).make()
            #expect(try service.answer("GET", "/auth", fields: Self.fields(token, proof, told + more)).status == 200)
        }
        var proof = try Self.proof(token)
        proof.set("htu", #""https://evil.example/login/me""#)
        let evil = ["X-Forwarded-Proto: https", "X-Forwarded-Host: evil.example"]
        #expect(try service.answer("GET", "/auth", fields: Self.fields(token, proof.make(), told + evil)).status == 401)
    }

    @Test("A device with too many proofs gets 429 and a time to wait")
    func tooMany() async throws {
        // There are 24 places for proofs, and each key gets an eighth of them.
        let store = MemoryReplayStore(capacity: 32, now: WallClock.unixMilliseconds() - 60_000)
        let service = try await Self.service(store: .memory(store))
        let token = try Self.token()
        func status(_ proof: Proof) throws -> Int {
            try service.answer("GET", "/auth", fields: Self.fields(token, proof.make())).status
        }
        for name in ["j-1", "j-2", "j-3"] { #expect(try status(Self.proof(token, name)) == 200) }
        let fields = Self.fields(token, try Self.proof(token, "j-4").make())
        let answer = try service.answer("GET", "/auth", fields: fields)
        #expect(answer.status == 429 && answer.code == "too_many_proofs")
        #expect(answer["retry-after"].flatMap { Int($0) }.map { (1...700).contains($0) } == true)
        #expect(answer["www-authenticate"] == nil && answer["x-auth-subject"] == nil)
    }
}
