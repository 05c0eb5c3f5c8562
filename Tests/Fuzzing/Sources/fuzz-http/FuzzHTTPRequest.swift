import LLHTTP
import LLTestSupport

/// Parses any bytes as a request. The verdict must not depend on the splits, and an accepted request must come out the
/// same when it is written again.
func fuzzRequest(_ input: [UInt8]) {
    guard let seed = input.first else { return }
    let bytes = Array(input.dropFirst())
    let whole = judge(bytes, [bytes.count])
    let split = judge(bytes, splits(bytes.count, seed: seed))
    guard whole.verdict == split.verdict, whole.content == split.content else {
        fail("the verdict depends on the splits: \(whole.verdict), \(split.verdict)")
    }
    checkRewriting(bytes)
}

private func judge(_ bytes: [UInt8], _ ends: [Int]) -> (verdict: RequestStream.Verdict, content: [UInt8]) {
    var stream = RequestStream(limits: HTTPLimits())
    for end in ends { stream.feed(bytes.span.extracting(0..<end)) }
    return (stream.verdict, stream.content)
}

/// The ends of the pieces: single bytes for an even seed, else pieces of the seed's length.
private func splits(_ count: Int, seed: UInt8) -> [Int] {
    let step = seed % 2 == 0 ? 1 : Int(seed)
    return Array(stride(from: step, to: count, by: step)) + [count]
}

/// A head that is accepted, written again from its parts, gives the same parts.
private func checkRewriting(_ bytes: [UInt8]) {
    var parser = HeadReader()
    guard parser.parse(bytes.span) == .complete else { return }
    let count = parser.head.byteCount
    guard count <= bytes.count, parser.head.fields.count <= HTTPLimits().fieldCount else { fail("a bound is broken") }
    let words = bytes[..<count].drop { $0 == 0x0D || $0 == 0x0A }.split(separator: 0x20, maxSplits: 2)
    var again = Array(words[0]) + [0x20] + words[1] + Array(" HTTP/1.\(parser.head.minorVersion)\r\n".utf8)
    for field in parser.head.fields {
        again += bytes[field.name] + Array(": ".utf8) + bytes[field.value] + Array("\r\n".utf8)
    }
    again += Array("\r\n".utf8)
    // Writing may add a space before a value, so a section just within its limit is skipped.
    if again.count > HTTPLimits().headerSectionBytes { return }
    var second = HeadReader()
    guard second.parse(again.span) == .complete else { fail("what was accepted is refused when written again") }
    let isSame =
        second.head.method == parser.head.method && second.head.contentLength == parser.head.contentLength
        && second.head.isChunked == parser.head.isChunked && second.head.keepAlive == parser.head.keepAlive
        && again[second.head.path] == bytes[parser.head.path]
        && second.head.fields.count == parser.head.fields.count
    if !isSame { fail("the head means something else when written again") }
}

private func fail(_ finding: String) -> Never {
    fatalError(finding)
}
