import LLTestSupport
import Testing

@Suite("h1spec on a live server", .live, .enabled(if: HTTPCases.arePresent, HTTPCases.reasonForSkipping))
struct H1SpecTests {
    @Test("Each of its 33 cases is answered as it asks")
    func everyCase() async throws {
        let cases = try HTTPCases.loadWithRepeats("h1spec-uws")
        #expect(cases.count == 33)
        let server = try TestServer()
        var passed = 0
        for httpCase in cases {
            let client = try BlockingClient(server.address)
            client.send(httpCase.bytes)
            let isWaiting = httpCase.profile == "incomplete"
            if !isWaiting {
                let status = try #require(client.readResponses(1).first { $0.status >= 200 }?.status)
                // Where its source and strict reading differ, which is once, the case asks for the refusal.
                let isRight = httpCase.expect == "accept" ? (200..<300).contains(status) : (400..<600).contains(status)
                #expect(isRight, "\(httpCase.name): \(status)")
                passed += isRight ? 1 : 0
            } else {
                // A fragment is waited on: no answer but the close that the client's own end brings.
                client.shutdownWrite()
                let (bytes, end) = client.read()
                let isRight = bytes.isEmpty && end == .endOfStream
                #expect(isRight, "\(httpCase.name): \(TestResponse.parseAll(bytes).map(\.status))")
                passed += isRight ? 1 : 0
            }
        }
        #expect(passed == 33)
        await server.stop()
    }
}
