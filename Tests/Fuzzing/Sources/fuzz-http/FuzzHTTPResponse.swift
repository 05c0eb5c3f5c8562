import LLHTTP

/// Parses any bytes as a response. The ranges must lie within the bytes, and the outcome must not depend on the splits.
func fuzzResponse(_ input: [UInt8]) {
    guard let seed = input.first else { return }
    let bytes = Array(input.dropFirst())
    var whole = ResponseParser(headLimit: 4096, fieldLimit: 20, answersConnect: seed % 3 == 0)
    let outcome = judge(&whole, bytes.span)
    var pieces = ResponseParser(headLimit: 4096, fieldLimit: 20, answersConnect: seed % 3 == 0)
    var last = Result<ResponseHead?, HTTPRefusal>.success(nil)
    for end in Array(stride(from: 0, to: bytes.count, by: max(1, Int(seed)))) + [bytes.count] {
        last = judge(&pieces, bytes.span.extracting(0..<end))
        if last != .success(nil) { break }
    }
    // With more bytes at hand, the parser may report the size limit instead of a fault.
    if outcome != last, outcome != .failure(.headerSectionTooLarge), last != .failure(.headerSectionTooLarge) {
        fatalError("the outcome depends on the splits: \(outcome), \(last)")
    }
    guard case .success(let head?) = outcome else { return }
    let isWithin = head.fields.allSatisfy { field in
        field.name.upperBound <= head.byteCount && field.value.upperBound <= head.byteCount && !field.name.isEmpty
    }
    guard isWithin, head.byteCount <= bytes.count, (200...599).contains(head.status) else {
        fatalError("a bound is broken")
    }
}

private func judge(_ parser: inout ResponseParser, _ bytes: Span<UInt8>) -> Result<ResponseHead?, HTTPRefusal> {
    do throws(HTTPRefusal) {
        return .success(try parser.parse(bytes))
    } catch {
        return .failure(error)
    }
}

/// Parses any text as a URL. The description of an accepted URL must parse to the same URL.
func fuzzURL(_ input: [UInt8]) {
    guard let url = try? HTTPURL(parsing: String(decoding: input, as: UTF8.self)) else { return }
    guard let again = try? HTTPURL(parsing: url.description), again == url else {
        fatalError("the URL means something else when written again: \(url)")
    }
}
