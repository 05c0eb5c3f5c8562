import LLTestSupport
import Testing

@Suite("h1spec on a live server", .live, .enabled(if: HTTPCases.arePresent, HTTPCases.reasonForSkipping))
struct H1SpecTests {
    @Test("Each of the 33 cases gets the answer it asks for")
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
                // In one case the source and a strict reading differ; that case expects the refusal.
                let isRight = httpCase.expect == "accept" ? (200..<300).contains(status) : (400..<600).contains(status)
                #expect(isRight, "\(httpCase.name): \(status)")
                passed += isRight ? 1 : 0
            } else {
                // An incomplete request gets no answer; the server closes once the client has ended its side.
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
