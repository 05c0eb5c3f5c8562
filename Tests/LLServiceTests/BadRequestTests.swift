import LLHTTP
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService

@Suite("POST /verify: refused requests", .live)
struct BadRequestTests {
    static let token = "\"id_token\":\"a.b.c\""

    @Test("A malformed body is invalid_request")
    func malformedBody() async throws {
        let service = try await InProcessService()
        for body in [
            " ", "}", "null", #""a""#, "{}{}", #"{"id_token":"a.b.c","\u0069d_token":"a.b.c","nonce":"n"}"#,
            #"{"id_token":null,"nonce":"n"}"#, #"{"id_token":["a.b.c"],"nonce":"n"}"#,
            #"{\#(Self.token),"raw_nonce":"n","issued_nonce":true}"#, #"{\#(Self.token),"subject":1}"#,
            #"{\#(Self.token),"nonce":"n","permissions":[1]}"#, #"{\#(Self.token),"nonce":"\ud800"}"#,
            "\u{feff}{\(Self.token),\"nonce\":\"n\"}", "{\"a\":" + String(repeating: "[", count: 5000) + "}",
        ] {
            let answer = try service.answer(body: body)
            #expect(
                answer.status == 400 && answer.code == "invalid_request" && answer["www-authenticate"] == nil,
                "\(body)"
            )
        }
    }

    @Test("JSON is accepted with charset utf-8 or without a charset")
    func jsonMediaTypes() async throws {
        let service = try await InProcessService()
        for type in [
            "application/json", "Application/JSON", "application/json;charset=utf-8",
            "application/json ; Charset=\"UTF-8\"", "application/json;",
        ] { #expect(try service.answer(fields: ["Content-Type: \(type)"], body: "{}").code == "invalid_request") }
    }
}
