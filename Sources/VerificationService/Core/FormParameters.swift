internal import Bytes

/// Reads `application/x-www-form-urlencoded` text (RFC 6749 appendix B): a request's query, or a form's body.
struct FormParameters {
    /// Greatest number of parameters: a form has few, a query perhaps somebody else's many.
    static let countLimit = 1_024

    private var parameters: [(name: [UInt8], value: [UInt8])] = []

    /// - Parameter last: the name of a parameter that ends the reading: it and what follows it are left alone.
    /// - Returns: nil where the text has a broken escape or more than ``countLimit`` parameters.
    init?(_ bytes: Span<UInt8>, _ range: Range<Int>, endingAt last: StaticString? = nil) {
        var start = range.lowerBound
        while start < range.upperBound {
            var end = start
            while end < range.upperBound, bytes[end] != UInt8(ascii: "&") { end += 1 }
            if end > start {
                var equals = start
                while equals < end, bytes[equals] != UInt8(ascii: "=") { equals += 1 }
                if let last, bytes.equal(start..<equals, last) { return }
                guard parameters.count < Self.countLimit,
                    let name = PercentEncoding.decode(bytes, start..<equals, isForm: true),
                    let value = PercentEncoding.decode(bytes, min(equals + 1, end)..<end, isForm: true)
                else { return nil }
                parameters.append((name, value))
            }
            start = end + 1
        }
    }

    /// How many parameters there are.
    var count: Int { parameters.count }

    /// How many parameters have this name.
    func count(of name: StaticString) -> Int {
        parameters.count { Self.isEqual($0.name, name) }
    }

    /// The value of the first parameter of this name.
    func first(_ name: StaticString) -> [UInt8]? {
        parameters.first { Self.isEqual($0.name, name) }?.value
    }

    private static func isEqual(_ bytes: [UInt8], _ name: StaticString) -> Bool {
        bytes.span.equal(0..<bytes.count, name)
    }
}
