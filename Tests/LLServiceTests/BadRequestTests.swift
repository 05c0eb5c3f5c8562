import LLHTTP
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
            " ", "}", "null", "\"a\"", "{}{}",
            "{\"id_token\":\"a.b.c\",\"\\u0069d_token\":\"a.b.c\",\"nonce\":\"n\"}",
            "{\"id_token\":null,\"nonce\":\"n\"}", "{\"id_token\":[\"a.b.c\"],\"nonce\":\"n\"}",
            "{\(token),\"raw_nonce\":\"n\",\"issued_nonce\":true}", "{\(token),\"subject\":1}",
            "{\(token),\"nonce\":\"n\",\"permissions\":[1]}", "{\(token),\"nonce\":\"\\ud800\"}",
            "\u{feff}{\(token),\"nonce\":\"n\"}", "{\"a\":" + String(repeating: "[", count: 5000) + "}",
        ]
    )
    func malformedBody(body: String) async throws {
        let service = try await InProcessService()
        let answer = try service.answer(body: body)
        #expect(answer.status == 400 && answer.code == "invalid_request")
        #expect(answer["www-authenticate"] == nil)
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
}
