import HTTP1
import HTTPClient

/// The client's grammar, on any bytes: no crash, ranges within the bytes, and an outcome that does not depend on how
/// they are split.
func fuzzResponse(_ input: [UInt8]) {
    guard let seed = input.first else { return }
    let bytes = Array(input.dropFirst())
    var whole = ResponseParser(headLimit: 4096, fieldLimit: 20, answersConnect: seed % 3 == 0)
    let outcome = whole.parse(bytes.span)
    var pieces = ResponseParser(headLimit: 4096, fieldLimit: 20, answersConnect: seed % 3 == 0)
    var last = ResponseParser.Outcome.needMore
    for end in Array(stride(from: 0, to: bytes.count, by: max(1, Int(seed)))) + [bytes.count] {
        last = pieces.parse(bytes.span.extracting(0..<end))
        if last != .needMore { break }
    }
    // With more bytes at hand the size limit may be met before the fault that lies behind it.
    if outcome != last, outcome != .reject(.headTooLarge), last != .reject(.headTooLarge) {
        fatalError("the outcome depends on the splits: \(outcome), \(last)")
    }
    guard case .complete(let head) = outcome else { return }
    let isWithin = head.fields.allSatisfy { field in
        field.name.upperBound <= head.byteCount && field.value.upperBound <= head.byteCount && !field.name.isEmpty
    }
    guard isWithin, head.byteCount <= bytes.count, (200...599).contains(head.status) else {
        fatalError("a bound is broken")
    }
}

/// URLs, on any text: no crash, and what is accepted is accepted again as it is written.
func fuzzURL(_ input: [UInt8]) {
    guard let url = try? HTTPURL(parsing: String(decoding: input, as: UTF8.self)) else { return }
    guard let again = try? HTTPURL(parsing: url.description), again == url else {
        fatalError("the URL means something else when written again: \(url)")
    }
}
