internal import Bytes
internal import HTTP1
internal import HTTPServer
internal import JOSE

/// What body a route takes. Its media type is judged by the head, before a byte of it is read (RFC 9110 sections 8.3,
/// 8.4, 15.5.16).
enum RequestBody: Sendable {
    /// The head is the whole request; a body that comes is dropped.
    case none
    /// The head is the whole request, whatever body it declares: gateways pass on their client's head alone.
    case ignored
    /// A body must be empty.
    case empty
    /// Uncompressed JSON, at most so many bytes.
    case json(atMost: Int)
    /// The same; without a body nothing need be declared.
    case jsonOrNothing(atMost: Int)
    /// An uncompressed form, at most so many bytes.
    case form(atMost: Int)

    /// What the server does after the head; nil where the head is answered at once.
    var decision: HeadDecision? {
        switch self {
        case .none: nil
        case .ignored: .ignoreBody
        case .empty: .readBody(atMost: 0)
        case .json(let limit), .jsonOrNothing(let limit), .form(let limit): .readBody(atMost: limit)
        }
    }

    /// Refuses a head that declares another body.
    func require(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ response: inout HTTPResponse
    ) throws(Problem) {
        switch self {
        case .none, .ignored, .empty: return
        case .json: try Self.requireJSON(head, bytes, &response)
        case .jsonOrNothing: if head.hasBody { try Self.requireJSON(head, bytes, &response) }
        case .form: try Self.requireForm(head, bytes, &response)
        }
    }

    private static func requireJSON(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ response: inout HTTPResponse
    ) throws(Problem) {
        if let coding = head.value(of: "content-encoding", in: bytes),
            !bytes.equalIgnoringCase(coding, "identity")
        {
            response.addField("Accept-Encoding: identity")
            throw Problem(.unsupportedMediaType, "The body must not be compressed.")
        }
        guard let type = head.value(of: "content-type", in: bytes), MediaType.isJSON(bytes, type) else {
            response.addField("Accept: application/json")
            throw Problem(.unsupportedMediaType, "The body must be application/json in UTF-8.")
        }
    }

    private static func requireForm(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ response: inout HTTPResponse
    ) throws(Problem) {
        let type = head.value(of: "content-type", in: bytes)
        guard let type, MediaType.isForm(bytes, type), head.value(of: "content-encoding", in: bytes) == nil else {
            response.addField("Accept: application/x-www-form-urlencoded")
            throw Problem(.unsupportedMediaType, "The body must be application/x-www-form-urlencoded.")
        }
    }
}

/// Reads a media type (RFC 9110 section 8.3.1) as far as this service needs it.
package enum MediaType {
    /// Whether the field value is `application/json`, without parameters or with `charset=utf-8` alone: JSON is UTF-8
    /// (RFC 8259 section 8.1), and another charset would be another text.
    package static func isJSON(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Bool {
        var end = value.lowerBound
        while end < value.upperBound, bytes[end] != UInt8(ascii: ";") { end += 1 }
        guard bytes.equalIgnoringCase(trimmed(bytes, value.lowerBound..<end), "application/json") else { return false }
        guard end < value.upperBound else { return true }
        let parameter = trimmed(bytes, (end + 1)..<value.upperBound)
        return bytes.equalIgnoringCase(parameter, "charset=utf-8")
            || bytes.equalIgnoringCase(parameter, "charset=\"utf-8\"")
            || parameter.isEmpty
    }

    /// Whether the field value is `application/x-www-form-urlencoded`. Its parameters are passed over: the type has
    /// none, and what clients add (`charset=UTF-8`) changes nothing.
    static func isForm(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Bool {
        var end = value.lowerBound
        while end < value.upperBound, bytes[end] != UInt8(ascii: ";") { end += 1 }
        return bytes.equalIgnoringCase(
            trimmed(bytes, value.lowerBound..<end),
            "application/x-www-form-urlencoded"
        )
    }

    private static func trimmed(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
        var start = range.lowerBound
        var end = range.upperBound
        while start < end, isBlank(bytes[start]) { start += 1 }
        while end > start, isBlank(bytes[end - 1]) { end -= 1 }
        return start..<end
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}

extension JSONDocument {
    /// Reads a request's body, which must be one JSON object; its limits are this document's.
    @inline(__always)
    mutating func parseObject(_ body: Span<UInt8>) throws(Problem) {
        do throws(JSONError) {
            try parse(body)
        } catch {
            throw Problem(.invalidRequest, "The body is not acceptable JSON: \(error).")
        }
        guard kind(root) == .object else { throw Problem(.invalidRequest, "The body must be a JSON object.") }
    }
}
