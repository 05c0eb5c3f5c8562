internal import LLBytes
internal import LLHTTP1
internal import LLHTTPServer
internal import LLJOSE

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

    /// What the server does after the head; nil if the head is answered at once.
    var decision: HeadDecision? {
        switch self {
        case .none: nil
        case .ignored: .ignoreBody
        case .empty: .readBody(atMost: 0)
        case .json(let limit), .jsonOrNothing(let limit), .form(let limit): .readBody(atMost: limit)
        }
    }

    /// Greatest length in bytes; nil if no body is read.
    var limit: Int? {
        if case .readBody(let limit) = decision { limit } else { nil }
    }

    /// Refuses a head that declares another body.
    func require(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ response: inout HTTPResponse
    ) throws(Problem) {
        switch self {
        case .none, .ignored, .empty: return
        case .jsonOrNothing where !head.hasBody: return
        case .json, .jsonOrNothing, .form: break
        }
        if let coding = head.value(of: "content-encoding", in: bytes), !bytes.equalIgnoringCase(coding, "identity") {
            response.addField("Accept-Encoding: identity")
            throw Problem(
                .unsupportedMediaType,
                "The body must not be compressed.",
                hint: "Send the body as it is, without Content-Encoding."
            )
        }
        let type = head.value(of: "content-type", in: bytes)
        if case .form = self {
            if let type, MediaType.isForm(bytes, type) { return }
            response.addField("Accept: application/x-www-form-urlencoded")
            throw RequestMistake.mediaType(type, in: bytes, wanted: "application/x-www-form-urlencoded")
        }
        if let type, MediaType.isJSON(bytes, type) { return }
        response.addField("Accept: application/json")
        throw RequestMistake.mediaType(type, in: bytes, wanted: "application/json in UTF-8")
    }
}

/// Reads a media type (RFC 9110 section 8.3.1) as far as this service needs it.
package enum MediaType {
    /// True if the field value is `application/json`, without parameters or with `charset=utf-8` alone: JSON is UTF-8
    /// (RFC 8259 section 8.1), and another charset would be another text.
    package static func isJSON(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Bool {
        let (type, parameters) = split(bytes, value)
        return bytes.equalIgnoringCase(type, "application/json")
            && (parameters.isEmpty || bytes.equalIgnoringCase(parameters, "charset=utf-8")
                || bytes.equalIgnoringCase(parameters, "charset=\"utf-8\""))
    }

    /// True if the field value is `application/x-www-form-urlencoded`. Its parameters are passed over: the type has
    /// none, and what clients add (`charset=UTF-8`) changes nothing.
    static func isForm(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Bool {
        bytes.equalIgnoringCase(split(bytes, value).type, "application/x-www-form-urlencoded")
    }

    private static func split(_ bytes: Span<UInt8>, _ value: Range<Int>) -> (type: Range<Int>, parameters: Range<Int>) {
        var end = value.lowerBound
        while end < value.upperBound, bytes[end] != UInt8(ascii: ";") { end += 1 }
        let parameters = trimmed(bytes, min(end + 1, value.upperBound)..<value.upperBound)
        return (trimmed(bytes, value.lowerBound..<end), parameters)
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

extension JSONLimits {
    /// Those of a request's body, whose bytes the route bounds. Names are compared with each other before it shows that some
    /// are not known, so that more than the nine which any route knows are refused early.
    static let ofRequest = JSONLimits(byteCount: VerifyEndpoint.bodyLimit, depth: 4, memberCount: 16, nodeCount: 1_024)
}

extension JSONDocument {
    /// The members of a request's body that has strings alone.
    static func texts(_ body: Span<UInt8>, known: [String]) throws(Problem) -> [String: String] {
        var document = JSONDocument(limits: .ofRequest)
        try document.parseObject(body)
        var members: [String: String] = [:]
        for name in document.children(of: document.root) {
            let member = document.string(name, in: body)
            guard known.contains(member) else { throw RequestMistake.unknownMember(member, known: known) }
            guard document.isString(name + 1) else {
                throw Problem(.invalidRequest, "The member \(member) must be a string.")
            }
            members[member] = document.string(name + 1, in: body)
        }
        return members
    }

    /// Reads a request's body, which must be one JSON object; its limits are this document's.
    @inline(__always)
    mutating func parseObject(_ body: Span<UInt8>) throws(Problem) {
        do throws(JSONError) {
            try parse(body)
        } catch {
            throw RequestMistake.malformedJSON(error, in: body)
        }
        guard kind(root) == .object else { throw Problem(.invalidRequest, "The body must be a JSON object.") }
    }
}

/// Reads `application/x-www-form-urlencoded` text (RFC 6749 appendix B): a request's query, or a form's body.
struct FormParameters {
    /// Greatest number of parameters: a form has few, a query perhaps many of another party.
    static let countLimit = 1_024

    private var parameters: [(name: [UInt8], value: [UInt8])] = []

    /// - Parameter last: the name of a parameter that ends the reading: it and what follows it are left alone.
    /// - Returns: nil if the text has a broken escape or more than ``countLimit`` parameters.
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

    var count: Int { parameters.count }

    /// True if two parameters have one name (RFC 6749 section 3.2), compared after decoding.
    var hasRepeatedName: Bool { Set(parameters.map(\.name)).count < parameters.count }

    func count(of name: StaticString) -> Int {
        parameters.count { $0.name.span.equal($0.name.indices, name) }
    }

    /// The name of the first parameter that is none of these.
    func firstName(except known: [String]) -> String? {
        parameters.lazy.map { String(decoding: $0.name, as: UTF8.self) }.first { !known.contains($0) }
    }

    /// The value of the first parameter of this name.
    func first(_ name: StaticString) -> [UInt8]? {
        parameters.first { $0.name.span.equal($0.name.indices, name) }?.value
    }
}
