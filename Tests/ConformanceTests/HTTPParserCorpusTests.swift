import Glibc
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

/// Ways to cut a run of bytes into pieces.
enum ByteSplits {
    /// The ends of the pieces, in rising order; the last is `count`. A failure can be repeated with the same seed.
    static func random(_ count: Int, seed: UInt64) -> [Int] {
        var numbers = RepeatableGenerator(seed: seed)
        var ends: [Int] = []
        while ends.last ?? 0 < count {
            ends.append(min(count, (ends.last ?? 0) + .random(in: 1...40, using: &numbers)))
        }
        return ends
    }

    static func single(_ count: Int) -> [Int] { Array(1..<(count + 1)) }
}

/// A copy of some bytes before an inaccessible page: reading one byte too far stops the process.
///
/// Safe to use: the object owns its memory, and every access below is bounded.
@safe
final class GuardedBytes {
    private let base: UnsafeMutableRawPointer
    private let mappedCount: Int
    private let usable: Int

    /// Allocates room for `capacity` bytes; nil if the system refuses.
    init?(capacity: Int) {
        let page = Int(getpagesize())
        let pages = (capacity + page - 1) / page + 1
        mappedCount = (pages + 1) * page
        usable = pages * page
        let memory = unsafe mmap(nil, mappedCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let memory = unsafe memory, unsafe memory != MAP_FAILED else { return nil }
        unsafe base = memory
        // The page behind the usable ones is part of the mapping.
        guard unsafe mprotect(memory + usable, page, PROT_NONE) == 0 else { return nil }
    }

    /// Calls `body` with the bytes, at most `capacity` of them. They end at the inaccessible page.
    func withSpan<Result>(_ bytes: ArraySlice<UInt8>, _ body: (Span<UInt8>) -> Result) -> Result {
        let count = min(bytes.count, usable)
        // count <= usable, so the copy lies within the accessible pages, which live as long as this object.
        let start = unsafe base + (usable - count)
        unsafe UnsafeMutableRawBufferPointer(start: start, count: count).copyBytes(from: bytes.prefix(count))
        let buffer = unsafe UnsafeBufferPointer(start: start.assumingMemoryBound(to: UInt8.self), count: count)
        return unsafe body(buffer.span)
    }

    deinit { unsafe munmap(base, mappedCount) }
}
