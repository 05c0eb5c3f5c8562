import LLHTTP1
import LLTestSupport
import Testing

@Suite("Every raw HTTP case, by the grammar alone", .enabled(if: HTTPCases.arePresent, HTTPCases.reasonForSkipping))
struct HTTPParserCorpusTests {
    /// What the library of cases assumes.
    static let limits: HTTPLimits = {
        var limits = HTTPLimits()
        limits.headerSectionBytes = 65_536
        limits.bodyBytes = 1_048_576
        return limits
    }()

    @Test("Each case gets its verdict whole, byte by byte and at random splits", arguments: HTTPCases.sources)
    func verdicts(source: String) throws {
        let cases = try HTTPCases.load(source)
        #expect(cases.count > 10)
        for httpCase in cases {
            let bytes = httpCase.bytes
            let memory = try #require(GuardedBytes(capacity: bytes.count))
            let whole = judge(bytes, [bytes.count], memory)
            #expect(whole.profile == HTTPCaseOverrides.profile(of: httpCase), "\(httpCase.name): \(whole)")
            // The bytes are copied to the guard for each piece, so long cases are cut more coarsely.
            if bytes.count <= 4_096 {
                #expect(judge(bytes, ByteSplits.single(bytes.count), memory) == whole, "\(httpCase.name)")
            }
            for seed in 1...3 as ClosedRange<UInt64> {
                let ends = ByteSplits.random(bytes.count, seed: seed)
                #expect(judge(bytes, ends, memory) == whole, "\(httpCase.name), seed \(seed)")
            }
        }
    }

    @Test("A case the sources agree on gets their verdict, or is listed with a reason", arguments: HTTPCases.sources)
    func agreement(source: String) throws {
        for httpCase in try HTTPCases.load(source) where httpCase.expect != "either" {
            var stream = RequestStream(limits: Self.limits)
            stream.feed(httpCase.bytes.span)
            // Of requests refused for their method alone the grammar lets the framing pass.
            let isAccepted = stream.verdict.accepted > 0 && stream.verdict.refusal == nil
            if isAccepted != (httpCase.expect == "accept") {
                #expect(HTTPCaseOverrides.all[httpCase.name] != nil, "\(httpCase.name): \(stream.verdict)")
            }
        }
    }

    @Test("Every override names a case there is, and is needed")
    func overrides() throws {
        let cases = try HTTPCases.loadAll()
        for (name, override) in HTTPCaseOverrides.all {
            let httpCase = try #require(cases.first { $0.name == name }, "\(name)")
            #expect(httpCase.profile != override.profile, "\(name)")
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
