import LLHTTP
import LLTestSupport
import Testing

@Suite("Every raw HTTP case, by the grammar alone", .enabled(if: HTTPCases.arePresent, HTTPCases.reasonForSkipping))
struct HTTPParserCorpusTests {
    /// The limits that the library of cases assumes.
    static let limits: HTTPLimits = {
        var limits = HTTPLimits()
        limits.headerSectionBytes = 65_536
        limits.bodyBytes = 1_048_576
        return limits
    }()

    @Test("Each case gets its verdict: whole, byte by byte and at random splits", arguments: HTTPCases.sources)
    func verdicts(source: String) throws {
        let cases = try HTTPCases.load(source)
        #expect(cases.count > 10)
        for httpCase in cases {
            let bytes = httpCase.bytes
            let memory = try #require(GuardedBytes(capacity: bytes.count))
            let whole = judge(bytes, [bytes.count], memory)
            #expect(whole.profile == HTTPCaseOverrides.profile(of: httpCase), "\(httpCase.name): \(whole)")
            // Each piece copies the bytes to the guard, so long cases are not split at every byte.
            if bytes.count <= 4_096 {
                #expect(judge(bytes, ByteSplits.single(bytes.count), memory) == whole, "\(httpCase.name)")
            }
            for seed in 1...3 as ClosedRange<UInt64> {
                let ends = ByteSplits.random(bytes.count, seed: seed)
                #expect(judge(bytes, ends, memory) == whole, "\(httpCase.name), seed \(seed)")
            }
        }
    }

    @Test("A case on which the sources agree gets their verdict, or has an override", arguments: HTTPCases.sources)
    func agreement(source: String) throws {
        for httpCase in try HTTPCases.load(source) where httpCase.expect != "either" {
            var stream = RequestStream(limits: Self.limits)
            stream.feed(httpCase.bytes.span)
            // The grammar accepts the framing of requests that are refused only for their method.
            let isAccepted = stream.verdict.accepted > 0 && stream.verdict.refusal == nil
            if isAccepted != (httpCase.expect == "accept") {
                #expect(HTTPCaseOverrides.refused.contains(httpCase.name), "\(httpCase.name): \(stream.verdict)")
            }
        }
    }

    @Test("Every override names an existing case and changes its verdict")
    func overrides() throws {
        let cases = try HTTPCases.sources.flatMap(HTTPCases.load)
        for name in HTTPCaseOverrides.refused {
            #expect(try #require(cases.first { $0.name == name }, "\(name)").profile != "reject", "\(name)")
        }
    }

    private func judge(_ bytes: [UInt8], _ ends: [Int], _ memory: GuardedBytes) -> RequestStream.Verdict {
        var stream = RequestStream(limits: Self.limits)
        for end in ends {
            memory.withSpan(bytes[..<end]) { stream.feed($0) }
        }
        return stream.verdict
    }
}
