/// Walks over a comma-separated list (RFC 9110 §5.6.1); empty elements are passed over, as §5.6.1.2 asks. The value's
/// length bounds their number.
package struct ListElements {
    private var index: Int
    private let end: Int

    /// - Parameter value: Where the list lies in the bytes given to ``next(_:)``.
    package init(_ value: Range<Int>) {
        index = value.lowerBound
        end = value.upperBound
    }

    /// The next element that is not empty, white space around it removed; nil at the end.
    package mutating func next(_ bytes: Span<UInt8>) -> Range<Int>? {
        while index < end {
            let start = Self.skipWhitespace(bytes, index, end)
            var comma = start
            while comma < end, bytes[comma] != UInt8(ascii: ",") {
                comma += 1
            }
            index = comma + 1
            var last = comma
            while last > start, bytes[last - 1] == ASCII.space || bytes[last - 1] == ASCII.tab {
                last -= 1
            }
            if last > start { return start..<last }
        }
        return nil
    }

    /// The first index from `index` on, at most `end`, that holds neither space nor tab.
    package static func skipWhitespace(_ bytes: Span<UInt8>, _ index: Int, _ end: Int) -> Int {
        var index = index
        while index < end, bytes[index] == ASCII.space || bytes[index] == ASCII.tab {
            index += 1
        }
        return index
    }
}
