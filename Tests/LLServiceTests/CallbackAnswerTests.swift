import LLHTTP
import LLTestSupport
import Testing

@testable import LLService

@Suite("The backend's answer to a callback", .live)
struct CallbackAnswerTests {
    enum Use: Sendable { case used, absent, unusable }

    private static func answer(url: String = "https://b.example/", code: String = "\"abc123\"") -> String {
        #"{"url":"\#(url)","confirmation_code":\#(code)}"#
    }

    static let answers: [(String, Use)] =
        [
            (#"{"url":"https:\/\/app.example/my?x=1","confirmation_code":"abc123","more":[1]}"#, .used),
            (#"{"url":"https://app.example/"}"#, .absent), (#"{"confirmation_code":"abc123"}"#, .absent),
            (answer().dropLast() + #","url":"https://b.example"}"#, .absent), (#"["url"]"#, .absent), ("ok", .absent),
            ("", .absent), ("{", .absent), ("{}", .absent), (answer(code: "123"), .unusable),
            (answer(code: "\"\""), .unusable), (answer(code: "\"a b\""), .unusable), (answer(code: "null"), .unusable),
            (#"{"url":1,"confirmation_code":"abc123"}"#, .unusable),
        ]
        + [
            "https://b.example/#/deletion/1", "https://b.example#x", "https://b.example/?a=1#",
            "HTTPS://B.example/a#b?c=%C3%BC/d", "https://b.example/#a@b",
        ].map { (answer(url: $0), .used) }
        + [
            "", "http://app.example/my", "javascript:alert(1)", "https://b.example/#a b", "https://b.example/#a#b",
            "https://b.example/#ü", #"https://b.example/#\n"#, #"https://b.example/#\"><b>"#, "http://b.example/#x",
            "https://#x", "https://a@b.example/#x", "#/deletion/1", "javascript:alert(1)#https://b.example/",
            "https://b.example/#" + String(repeating: "x", count: 2_048),
        ].map { (answer(url: $0), .unusable) }

    @Test("An answer needs both members: a URL that people can open, and a visible code", arguments: answers)
    func read(answer: String, use: Use) {
        do {
            let status = try DeletionStatus(answer: Array(answer.utf8))
            #expect(use == (status == nil ? .absent : .used))
        } catch { #expect(use == .unusable) }
    }

    @Test("A good answer is passed on; the log reports an unusable one, without the person's id")
    func passedOn() async throws {
        for (url, isUsed) in [("https://b.example/#218471", true), ("http://b.example/218471", false)] {
            let service = try await CallbackService.make { _, peer in
                try peer.answer(status: "202 Accepted", Self.answer(url: url))
            }
            #expect(try service.call("deauthorize", CallbackService.good()).text == "{}")
            let body = try CallbackRouteTests.object(try service.call("data-deletion", CallbackService.good()).body)
            #expect((body["url"] as? String == url) == isUsed)
            #expect((body["confirmation_code"] as? String == "abc123") == isUsed)
            #expect((body["url"] as? String)?.hasPrefix(CallbackService.statusURL + "?code=") == !isUsed)
            let lines = service.log.withLock { $0 }
            #expect(lines.count { $0.hasPrefix("answer to a callback not used") } == (isUsed ? 0 : 1))
            #expect(!lines.contains { $0.contains("218471") })
        }
    }
}
