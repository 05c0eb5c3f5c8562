import LLHTTP
import LLService
import LLTestSupport
import LimitedLogin
import Testing

@Suite("The Graph client and access tokens", .live)
struct AccessTokenCallTests {
    private static let token = GraphAccessToken(Array("EAAtoken&=%0123456789".utf8))

    private static func client(_ issuer: ScriptedIssuer) throws -> GraphClient {
        GraphClient(
            configuration: try GraphConfiguration(url: "http://127.0.0.1:\(issuer.port)"),
            client: HTTPSClient(),
            callTimeout: .seconds(300),
            random: { _ in 0 }
        )
    }

    private static func app() throws -> AppSecret {
        try #require(AppSecret(appID: "123456789012345", secret: "0123456789abcdef0123456789abcdef"))
    }

    @Test("A token is escaped in the query, and friends are requested by id alone")
    func requests() throws {
        let issuer = try ScriptedIssuer { _, peer in try peer.answerAndStay(#"{"data":{}}"#) }
        defer { issuer.stop() }
        let client = try Self.client(issuer)
        #expect(try client.inspection(of: Self.token, app: Self.app()) == Array(#"{"data":{}}"#.utf8))
        _ = try client.me(["id", "friends"], with: Self.token, app: Self.app())
        let paths = issuer.requests.map(\.path)
        #expect(paths.first?.hasPrefix("/v26.0/debug_token?input_token=EAAtoken%26%3D%250123456789&appsecret") == true)
        #expect(paths.last?.hasPrefix("/v26.0/me?fields=id%2Cfriends.limit%282000%29%7Bid%7D&appsecret_proof=") == true)
        #expect(issuer.requests.last?.value(of: "authorization") == "Bearer EAAtoken&=%0123456789")
        #expect("\(Self.token)\(String(reflecting: Self.token))".contains("EAA") == false)
    }

    @Test(
        "Only Graph's own message marks a token as another app's",
        arguments: [
            (100, "(#100) The App_id in the input_token did not match the Viewing App", true),
            (100, "The app_id in the INPUT_TOKEN did not match the viewing app.", true),
            (100, "Invalid appsecret_proof provided in the API argument", false),
            (190, "did not match the Viewing App", false), (100, "", false),
        ]
    )
    func otherApps(_ code: Int, _ message: String, _ isOther: Bool) throws {
        let issuer = try ScriptedIssuer { _, peer in
            try peer.answer(status: "400 X", #"{"error":{"message":"\#(message)","code":\#(code)}}"#)
        }
        defer { issuer.stop() }
        let client = try Self.client(issuer)
        if isOther {
            #expect(try client.inspection(of: Self.token, app: Self.app()) == nil)
        } else {
            #expect(throws: GraphFailure.self) { try client.inspection(of: Self.token, app: Self.app()) }
        }
    }

    @Test("An answer with 2,000 friends fits, and an answer beyond the limit is refused")
    func sizes() throws {
        let friends = (0..<2_000).map { "{\"id\":\"\(10_000_000_000_000_000 + $0)\"}" }.joined(separator: ",")
        let fits = #"{"id":"1","friends":{"data":[\#(friends)]}}"#
        let tooLong = #"{"id":"1","x":"\#(String(repeating: "y", count: 262_144))"}"#
        let issuer = try ScriptedIssuer { request, peer in
            try peer.answer(request.number == 1 ? fits : tooLong)
        }
        defer { issuer.stop() }
        let client = try Self.client(issuer)
        #expect(try client.me(["id"], with: Self.token, app: Self.app()).count == fits.utf8.count)
        let failure = #expect(throws: GraphFailure.self) { try client.me(["id"], with: Self.token, app: Self.app()) }
        #expect(failure?.error == .graphUnreadableAnswer)
    }
}
