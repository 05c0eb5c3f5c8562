/// Reads and writes `application/x-www-form-urlencoded` text (RFC 6749 appendix B): a query or the body of a form.
package struct FormParameters {
    /// The greatest number of parameters. A form has few, but a query may contain many of another party.
    package static let countLimit = 1_024

    private var parameters: [(name: [UInt8], value: [UInt8])] = []

    /// - Parameter last: The name of a parameter that ends the reading: it and all parameters after it are ignored.
    /// - Returns: nil if the text has a broken escape or more than ``countLimit`` parameters.
    package init?(_ bytes: Span<UInt8>, _ range: Range<Int>, endingAt last: StaticString? = nil) {
        let text = bytes.extracting(range)
        var start = 0
        while start < text.count {
            let end = text.firstOffset(of: UInt8(ascii: "&"), from: start)
            if end > start {
                let parameter = text.extracting(start..<end)
                let equals = parameter.firstOffset(of: UInt8(ascii: "="), from: 0)
                if let last, parameter.equal(0..<equals, last) { return }
                guard parameters.count < Self.countLimit,
                    let name = PercentEncoding.decode(parameter, 0..<equals, isForm: true),
                    let value = PercentEncoding.decode(
                        parameter,
                        min(equals + 1, parameter.count)..<parameter.count,
                        isForm: true
                    )
                else { return nil }
                parameters.append((name, value))
            }
            start = end + 1
        }
    }

    package var count: Int { parameters.count }

    package var hasRepeatedName: Bool { Set(parameters.map(\.name)).count < parameters.count }

    package func count(of name: StaticString) -> Int { parameters.count { $0.name.span.equal($0.name.indices, name) } }

    /// The name of the first parameter outside `known`; nil if there is none.
    package func firstName(except known: [String]) -> String? {
        parameters.lazy.map { String(decoding: $0.name, as: UTF8.self) }.first { !known.contains($0) }
    }

    package func first(_ name: StaticString) -> [UInt8]? {
        parameters.first { $0.name.span.equal($0.name.indices, name) }?.value
    }

    /// The values by name, as text; the last one of a repeated name.
    package var texts: [String: String] {
        let pairs = parameters.map {
            (String(decoding: $0.name, as: UTF8.self), String(decoding: $0.value, as: UTF8.self))
        }
        return Dictionary(pairs) { $1 }
    }

    package static func encode(_ parameters: [(name: String, value: String)]) -> String {
        let pairs = parameters.map { "\(PercentEncoding.encode($0.name))=\(PercentEncoding.encode($0.value))" }
        return pairs.joined(separator: "&")
    }
}
