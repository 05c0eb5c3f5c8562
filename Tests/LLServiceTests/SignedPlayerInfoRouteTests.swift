import LLSockets
import LLStores
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService

@Suite("POST /verify with the signed player info of an Instant Game", .live)
struct SignedPlayerInfoRouteTests {
    private static let nonce = #""nonce":"\#(TestPlayerInfo.nonce)""#
    private static let app = TestSignedRequest.secrets[1].appID
    private static let other = TestSignedRequest.secrets[0].appID
    private static let secrets = TestSignedRequest.secrets.map { "\($0.appID) \($0.secret)\n" }.joined()

    private static func service(
        secrets: String? = secrets,
        rejectsReplays: Bool = false,
        binding: VerificationPolicy.Binding = .required,
        nonces: Bool = true
    ) async throws -> GraphService {
        try await GraphService(
            appIDs: TestSignedRequest.secrets.map(\.appID),
            secrets: secrets,
            replayStore: GraphService.memory(),
            workerCount: 1,
            rejectsReplays: rejectsReplays,
            nonces: nonces ? try DecodedNonce.issuer() : nil,
            binding: binding
        )
    }

    private static func judge(_ service: GraphService, _ text: String, _ members: String = nonce) throws -> TestResponse
    {
        let more = members.isEmpty ? "" : ",\(members)"
        let spelt = text.replacing("\n", with: "\\n")
        return try service.answer("POST", "/verify", body: "{\"signed_player_info\":\"\(spelt)\"\(more)}")
    }

    private static var now: Int64 { WallClock.unixSeconds() }

    @Test("The answer has the player, app, time and nonce; Graph is not called, and access tokens stay refused")
    func accepted() async throws {
        let service = try await Self.service()
        let issuedAt = Self.now - 10
        for member in ["player_id", "asid"] {
            let info = try TestPlayerInfo.make(issuedAt: issuedAt, member: member)
            let response = try Self.judge(service, info, Self.nonce + #","app_id":"\#(Self.app)""#)
            #expect(response.status == 200)
            #expect(response["cache-control"] == "no-store")
            let told =
                #"{"player":{"app_id":"222","\#(member)":"\#(TestPlayerInfo.player)","issued_at":\#(issuedAt),"#
                + #""nonce":"\#(TestPlayerInfo.nonce)"}}"#
            #expect(response.text == told)
        }
        #expect(service.graph.requestCount == 0)
        let metrics = service.registry.render()
        #expect(metrics.contains(#"verifications_total{credential="signed_player_info",result="accepted"} 2"#))
        #expect(try service.judge().code == "access_token_not_allowed")
        await service.stop()
    }

    @Test("Each forgery is refused with its code, and the answer repeats nothing of it")
    func forgeries() async throws {
        let service = try await Self.service()
        for forgery in PlayerInfoForgery.all {
            let text = try forgery.text(Self.now - 10)
            let response = try Self.judge(service, text)
            #expect(response.status == 401 && response.code == forgery.code, "\(forgery) \(response.text)")
            #expect(response["www-authenticate"]?.contains("code=\"\(forgery.code)\"") == true)
            #expect(!response.text.contains(TestPlayerInfo.player) && !response.text.contains(TestPlayerInfo.nonce))
        }
        // This player info is valid, but it is not of the app that the request names.
        let info = try TestPlayerInfo.make(issuedAt: Self.now)
        let named = try Self.judge(service, info, Self.nonce + #","app_id":"\#(Self.other)""#)
        #expect(named.status == 401 && named.code == "invalid_signed_player_info")
        await service.stop()
    }

    @Test("An issued nonce is accepted once, from any player, and only for the app that signed")
    func issued() async throws {
        let service = try await Self.service()
        let issued = #""issued_nonce":true"#
        let nonce = try service.issueNonce(#"{"app_id":"222"}"#)
        let late = try TestPlayerInfo.make(issuedAt: Self.now - 4_000, nonce: nonce)
        #expect(try Self.judge(service, late, issued).code == "invalid_signed_player_info")
        let info = try TestPlayerInfo.make(issuedAt: Self.now, nonce: nonce)
        let first = try Self.judge(service, info, issued)
        #expect(first.status == 200 && first.text.contains(nonce))
        #expect(try Self.judge(service, info, issued).code == "nonce_used")
        let again = try TestPlayerInfo.make(issuedAt: Self.now, nonce: nonce, member: "asid")
        #expect(try Self.judge(service, again, issued).code == "nonce_used")
        let foreign = try service.issueNonce(#"{"app_id":"111"}"#)
        let other = try TestPlayerInfo.make(issuedAt: Self.now, nonce: foreign)
        #expect(try Self.judge(service, other, issued).code == "nonce_not_issued")
        await service.stop()
    }

    @Test("With replay: reject a player info is accepted once, in any spelling of its signature")
    func replays() async throws {
        let service = try await Self.service(rejectsReplays: true)
        let info = try TestPlayerInfo.make(issuedAt: Self.now)
        #expect(try Self.judge(service, info).status == 200)
        for text in [info, info.replacing(".", with: "=.")] {
            let response = try Self.judge(service, text)
            #expect(response.status == 401 && response.code == "token_replayed", "\(response.text)")
        }
        await service.stop()
    }

    @Test("A revoked asid is refused; a player_id cannot be revoked")
    func revoked() async throws {
        let service = try await Self.service()
        let moment = Self.now - 5
        service.core.revocations.revoke(
            app: Self.app.utf8.span,
            user: TestPlayerInfo.player.utf8.span,
            at: moment
        ) { _ in }
        let before = try TestPlayerInfo.make(issuedAt: moment, member: "asid")
        #expect(try Self.judge(service, before).code == "login_revoked")
        #expect(try Self.judge(service, TestPlayerInfo.make(issuedAt: moment + 1, member: "asid")).status == 200)
        #expect(try Self.judge(service, TestPlayerInfo.make(issuedAt: moment)).status == 200)
        await service.stop()
    }

    @Test("A player info without a nonce is 400, unless the binding is optional; without secrets it is also 400")
    func unbound() async throws {
        let info = try TestPlayerInfo.make(issuedAt: Self.now)
        let service = try await Self.service()
        let response = try Self.judge(service, info, "")
        #expect(response.status == 400 && response.code == "invalid_request", "\(response.text)")
        await service.stop()
        let optional = try await Self.service(binding: .optional)
        let answer = try Self.judge(optional, info, "")
        #expect(answer.status == 200 && !answer.text.contains("nonce"))
        await optional.stop()
        let closed = try await Self.service(secrets: nil)
        let refused = try Self.judge(closed, info)
        #expect(refused.status == 400 && refused.detail.contains("app_secrets_file"), "\(refused.text)")
        await closed.stop()
    }

    @Test("A malformed request is refused")
    func badRequests() async throws {
        let service = try await Self.service()
        let info = try TestPlayerInfo.make(issuedAt: Self.now)
        for (members, code) in [
            (#""nonce":"""#, "invalid_nonce"), (#""nonce":5"#, "invalid_nonce"), (#""nonce":"a b""#, "invalid_nonce"),
            (#""nonce":"n","issued_nonce":true"#, "invalid_request"), (#""issued_nonce":1"#, "invalid_request"),
            (#""raw_nonce":"n""#, "invalid_request"), (#""subject":"1""#, "invalid_request"),
            (#""nonce":"n","app_id":"444""#, "unknown_app"), (#""nonce":"n","app_id":5"#, "invalid_request"),
            (#""nonce":"n","id_token":"x""#, "invalid_request"),
            (#""nonce":"n","access_token":"x""#, "invalid_request"),
            (#""nonce":"n","auth_nonce":true"#, "invalid_request"),
        ] {
            let response = try Self.judge(service, info, members)
            #expect(response.status == 400 && response.code == code, "\(members) \(response.text)")
        }
        #expect(try Self.judge(service, "").status == 400)
        await service.stop()
        let silent = try await Self.service(nonces: false)
        #expect(try Self.judge(silent, info, #""issued_nonce":true"#).status == 400)
        await silent.stop()
    }
}
