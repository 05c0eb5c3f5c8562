import LLHTTP
import LLTestSupport
import Testing

@Suite("Every raw HTTP case, over a socket", .live, .enabled(if: HTTPCases.arePresent, HTTPCases.reasonForSkipping))
struct HTTPServerCorpusTests {
    /// The statuses of the responses to a case, and how the connection ended.
    struct Outcome: Equatable, CustomStringConvertible {
        var statuses: [Int]
        var end: BlockingClient.ReadEnd

        var description: String { "\(statuses), then \(end)" }
    }

    @Test(
        "Verdict and responses are the same for the whole case, single bytes and random splits",
        arguments: HTTPCases.sources
    )
    func verdicts(source: String) async throws {
        var limits = HTTPServerLimits.patient
        limits.http = HTTPParserCorpusTests.limits
        // These cases have larger heads and bodies than the service accepts.
        limits.requestBytes = 2 * limits.http.bodyBytes
        let server = try TestServer(limits: limits) { _ in TestHandler() }
        for httpCase in try HTTPCases.load(source) {
            let bytes = httpCase.bytes
            let wanted = expected(bytes)
            #expect(try exchange(bytes, [bytes.count], server) == wanted, "\(httpCase.name)")
            #expect(try exchange(bytes, ByteSplits.single(bytes.count), server) == wanted, "\(httpCase.name), single")
            let ends = ByteSplits.random(bytes.count, seed: 7)
            #expect(try exchange(bytes, ends, server) == wanted, "\(httpCase.name), random")
            if !HTTPCaseOverrides.refused.contains(httpCase.name), httpCase.profile.hasPrefix("accept") {
                let accepted = wanted.statuses.filter { $0 == 200 }.count
                #expect(accepted == httpCase.responses, "\(httpCase.name): \(wanted)")
            }
        }
        await server.server.stop(drainDelay: .zero, grace: .zero)
    }

    /// The responses that follow from the grammar's verdict; ``HTTPParserCorpusTests`` tests the verdict itself.
    private func expected(_ bytes: [UInt8]) -> Outcome {
        var stream = RequestStream(limits: HTTPParserCorpusTests.limits)
        stream.feed(bytes.span)
        var statuses = [Int](repeating: 200, count: stream.verdict.accepted)
        if let refusal = stream.verdict.refusal { statuses.append(Int(refusal.status)) }
        return Outcome(statuses: statuses, end: .endOfStream)
    }

    /// Sends the bytes in pieces, shuts down writing and reads to the end. Interim responses are left out: the server
    /// sends one only if the body is not there yet.
    private func exchange(_ bytes: [UInt8], _ ends: [Int], _ server: TestServer) throws -> Outcome {
        let client = try BlockingClient(server.address)
        var start = 0
        for end in ends {
            client.send(Array(bytes[start..<end]))
            start = end
        }
        client.shutdownWrite()
        let (received, end) = client.read()
        let responses = TestResponse.parseAll(received)
        return Outcome(statuses: responses.map(\.status).filter { $0 >= 200 }, end: end)
    }
}
