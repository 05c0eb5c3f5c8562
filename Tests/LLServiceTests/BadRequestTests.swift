import LLHTTP1
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService

@Suite("POST /verify: refused requests", .live)
struct BadRequestTests {
    static let token = "\"id_token\":\"a.b.c\""

    @Test(
        "A malformed body is invalid_request",
        arguments: [
            "", " ", "{", "}", "[]", "null", "\"a\"", "{}{}", "{\(token)", "{\(token),}", "{'id_token':'a'}",
            "{\"id_token\":\"a.b.c\",\"id_token\":\"a.b.c\",\"nonce\":\"n\"}",
            "{\"id_token\":\"a.b.c\",\"\\u0069d_token\":\"a.b.c\",\"nonce\":\"n\"}",
            "{\(token),\"nonce\":\"n\",\"extra\":1}", "{\(token),\"Nonce\":\"n\"}", "{\"nonce\":\"n\"}",
            "{\"id_token\":\"\",\"nonce\":\"n\"}", "{\"id_token\":null,\"nonce\":\"n\"}",
            "{\"id_token\":1,\"nonce\":\"n\"}", "{\"id_token\":[\"a.b.c\"],\"nonce\":\"n\"}", "{\(token)}",
            "{\(token),\"nonce\":\"n\",\"raw_nonce\":\"n\"}",
            "{\(token),\"raw_nonce\":\"n\",\"issued_nonce\":true}", "{\(token),\"subject\":1}",
            "{\(token),\"subject\":\"\"}", "{\(token),\"nonce\":\"n\",\"app_id\":1}",
            "{\(token),\"nonce\":\"n\",\"permissions\":\"email\"}",
            "{\(token),\"nonce\":\"n\",\"permissions\":[1]}", "{\(token),\"nonce\":\"n\",\"permissions\":{}}",
            "{\(token),\"nonce\":\"n\",\"permissions\":null}", "{\(token),\"nonce\":\"\\ud800\"}",
            "\u{feff}{\(token),\"nonce\":\"n\"}", "{\(token),\"nonce\":\"n\"} x",
            "{\"a\":" + String(repeating: "[", count: 5000) + "}",
        ]
    )
    func malformedBody(body: String) async throws {
        let service = try await InProcessService()
        let answer = try service.answer(body: body)
        #expect(answer.status == 400)
        #expect(answer.code == "invalid_request")
        #expect(answer["www-authenticate"] == nil)
    }

    @Test(
        "The detail says why and at which byte a body is not JSON",
        arguments: [
            ("{\(token)", "the text ends too early, at byte 19"), ("{} x", "unexpected x at byte 3"),
            ("{\(token),}", "unexpected } at byte 20"), ("{'id_token':'a'}", "unexpected ' at byte 1"),
            ("{\"a\":\n]", "unexpected ] at byte 6"), ("{\"a\" 1}", "unexpected 1 at byte 5"),
            ("{\"a\":\u{7f}}", "unexpected 0x7F at byte 5"),
            ("{\"a\":1,\"a\":2}", "an object names a member twice, at byte 7"),
        ]
    )
    func unreadableBody(body: String, fault: String) async throws {
        let service = try await InProcessService()
        let answer = try service.answer(body: body)
        #expect(answer.detail == "The body is not acceptable JSON: \(fault).")
    }

    @Test(
        "An invalid nonce is invalid_nonce",
        arguments: [
            #""nonce":"""#, #""nonce":"a b""#, #""nonce":"a\tb""#, #""nonce":" a""#, #""nonce":"a\n""#,
            #""nonce":"a\u00a0b""#, #""nonce":"\u2003""#, #""nonce":null"#, #""nonce":7"#, #""raw_nonce":"""#,
            #""raw_nonce":["a"]"#,
        ]
    )
    func nonces(member: String) async throws {
        let service = try await InProcessService()
        let answer = try service.verify("a.b.c", member)
        #expect(answer.status == 400)
        #expect(answer.code == "invalid_nonce")
    }

    @Test(
        "A permission outside Limited Login's scope is invalid_permission",
        arguments: ["user_likes", "Email", "", "email ", "openid", "user_posts", "public_profile\\u0000"]
    )
    func permissions(name: String) async throws {
        let service = try await InProcessService()
        let answer = try service.verify("a.b.c", #""nonce":"n","permissions":["email","\#(name)"]"#)
        #expect(answer.status == 400)
        #expect(answer.code == "invalid_permission")
    }

    @Test(
        "A body that is not declared as plain JSON is unsupported",
        arguments: [
            [], ["Content-Type: text/plain"], ["Content-Type: application/x-www-form-urlencoded"],
            ["Content-Type: application/jsonp"], ["Content-Type: application/json; charset=latin1"],
            ["Content-Type: application/json", "Content-Encoding: gzip"], ["Content-Type:"],
        ]
    )
    func mediaTypes(fields: [String]) async throws {
        let service = try await InProcessService()
        let answer = try service.answer(fields: fields, body: "{}")
        #expect(answer.status == 415)
        #expect(answer.code == "unsupported_media_type")
        #expect(answer["accept"] == "application/json" || answer["accept-encoding"] == "identity")
    }

    @Test(
        "JSON is accepted with charset utf-8 or without a charset",
        arguments: [
            "application/json", "Application/JSON", "application/json;charset=utf-8",
            "application/json ; Charset=\"UTF-8\"", "application/json;",
        ]
    )
    func jsonMediaTypes(type: String) async throws {
        let service = try await InProcessService()
        #expect(try service.answer(fields: ["Content-Type: \(type)"], body: "{}").code == "invalid_request")
    }

    @Test("A request needs a binding unless the policy makes it optional")
    func optionalBinding() async throws {
        let token = try Tokens.mint(Tokens.claims())
        let required = try await InProcessService()
        #expect(try required.verify(token, "").code == "invalid_request")
        let policy = try VerificationPolicy(appIDs: [InProcessService.appID], binding: .optional)
        let optional = try await InProcessService(policy: policy)
        #expect(try optional.verify(token, "").status == 200)
        #expect(try optional.verify(token, #""nonce":"other""#).code == "nonce_mismatch")
    }
}
