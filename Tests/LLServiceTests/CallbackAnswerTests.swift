import LLHTTP
import LLTestSupport
import Testing

@testable import LLService

@Suite("The backend's answer to a callback", .live)
struct CallbackAnswerTests {
    @Test(
        "The backend's answer for the person is passed on if both members are present and valid",
        arguments: [
            (#"{"url":"https:\/\/app.example/my?x=1","confirmation_code":"abc123","more":[1]}"#, true),
            (#"{"url":"https://app.example/my?x=1"}"#, false), (#"{"confirmation_code":"abc123"}"#, false),
            (#"{"url":"https://app.example/my?x=1","confirmation_code":123}"#, false),
            (#"{"url":"https://app.example/my?x=1","confirmation_code":""}"#, false),
            (#"{"url":"https://app.example/my?x=1","confirmation_code":"a b"}"#, false),
            (#"{"url":"https://app.example/my?x=1","confirmation_code":"abc123","url":"https://b.example"}"#, false),
            (#"{"url":"http://app.example/my","confirmation_code":"abc123"}"#, false),
            (#"{"url":"javascript:alert(1)","confirmation_code":"abc123"}"#, false),
            (#"["url"]"#, false), ("ok", false), ("", false), ("{", false),
        ]
    )
    func ownStatus(answer: String, isUsed: Bool) async throws {
        let service = try await CallbackService { _, peer in try peer.answer(status: "202 Accepted", answer) }
        let response = try service.call("data-deletion", CallbackService.good())
        #expect(response.status == 200)
        let body = try CallbackRouteTests.object(response.body)
        #expect((body["confirmation_code"] as? String == "abc123") == isUsed)
        #expect(body["url"] as? String == "https://app.example/my?x=1" || !isUsed)
        #expect((body["url"] as? String)?.hasPrefix(CallbackService.statusURL + "?code=") == !isUsed)
        await service.stop()
    }

    @Test(
        "A status page with a fragment is passed on unchanged",
        arguments: [
            ("https://b.example/#/deletion/1", true), ("https://b.example#x", true), ("https://b.example/?a=1#", true),
            ("HTTPS://B.example/a#b?c=%C3%BC/d", true), ("https://b.example/#a@b", true),
            ("https://b.example/#a b", false), ("https://b.example/#a#b", false), ("https://b.example/#ü", false),
            (#"https://b.example/#\n"#, false), (#"https://b.example/#\"><b>"#, false), ("http://b.example/#x", false),
            ("https://#x", false), ("https://a@b.example/#x", false), ("#/deletion/1", false),
            ("javascript:alert(1)#https://b.example/", false),
            ("https://b.example/#" + String(repeating: "x", count: 2_048), false),
        ]
    )
    func fragment(url: String, isUsed: Bool) async throws {
        let service = try await CallbackService { _, peer in
            try peer.answer(#"{"url":"\#(url)","confirmation_code":"abc123"}"#)
        }
        let body = try CallbackRouteTests.object(try service.call("data-deletion", CallbackService.good()).body)
        #expect((body["url"] as? String == url) == isUsed)
        #expect((body["confirmation_code"] as? String == "abc123") == isUsed)
        await service.stop()
    }

    @Test(
        "The log reports an answer with both members but unusable values, without the person's id",
        arguments: [
            (#"{"url":"http://b.example/218471","confirmation_code":"abc123"}"#, true),
            (#"{"url":"https://b.example/218471","confirmation_code":"a b"}"#, true),
            (#"{"url":1,"confirmation_code":"218471"}"#, true), (#"{"url":"","confirmation_code":null}"#, true),
            (#"{"url":"https://b.example/","confirmation_code":"abc123"}"#, false),
            (#"{"url":"https://b.example/"}"#, false), (#"{"confirmation_code":"abc123"}"#, false), ("{}", false),
            ("", false), ("ok", false),
        ]
    )
    func toldAnswer(answer: String, isTold: Bool) async throws {
        let service = try await CallbackService { _, peer in try peer.answer(answer) }
        for name in ["data-deletion", "deauthorize"] {
            #expect(try service.call(name, CallbackService.good()).status == 200)
        }
        let lines = service.log.withLock { $0 }
        #expect(lines.filter { $0.hasPrefix("answer to a callback not used") }.count == (isTold ? 1 : 0))
        #expect(!lines.contains { $0.contains("218471") })
        await service.stop()
    }
}
