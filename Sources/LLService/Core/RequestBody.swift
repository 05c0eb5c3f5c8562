internal import LLBytes
internal import LLHTTP
package import LLJOSE
internal import LimitedLogin

/// The kind of body that a route accepts. The head alone decides about the media type, before the body is read (RFC
/// 9110 sections 8.3, 8.4, 15.5.16).
enum RequestBody: Sendable {
    case none
    /// The head is the whole request, even if it declares a body: gateways pass on their client's head alone.
    case ignored
    case empty
    /// Uncompressed JSON of at most this many bytes.
    case json(atMost: Int)
    /// The same, or no body; a request without a body needs no `Content-Type`.
    case jsonOrNothing(atMost: Int)
    /// An uncompressed form of at most this many bytes.
    case form(atMost: Int)

    /// The server's next step after the head; nil if the head is answered at once.
    var decision: HeadDecision? {
        switch self {
        case .none: nil
        case .ignored: .ignoreBody
        case .empty: .readBody(atMost: 0)
        case .json(let limit), .jsonOrNothing(let limit), .form(let limit): .readBody(atMost: limit)
        }
    }

    var limit: Int? {
        if case .readBody(let limit) = decision { limit } else { nil }
    }

    func require(_ exchange: inout HTTPExchange, _ bytes: Span<UInt8>) throws(Rejection) {
        switch self {
        case .none, .ignored, .empty: return
        case .jsonOrNothing where !exchange.head.hasBody: return
        case .json, .jsonOrNothing, .form: break
        }
        let coding = exchange.head.value(of: "content-encoding", in: bytes)
        if let coding, !bytes.equalIgnoringCase(coding, "identity") {
            exchange.response.addField("Accept-Encoding: identity")
            throw Rejection(
                .unsupportedMediaType,
                "The body must not be compressed.",
                hint: "Send the body as it is, without Content-Encoding."
            )
        }
        let type = exchange.head.value(of: "content-type", in: bytes)
        if case .form = self {
            if let type, MediaType.isForm(bytes, type) { return }
            exchange.response.addField("Accept: application/x-www-form-urlencoded")
            throw RequestMistake.mediaType(type, in: bytes, wanted: "application/x-www-form-urlencoded")
        }
        if let type, MediaType.isJSON(bytes, type) { return }
        exchange.response.addField("Accept: application/json")
        throw RequestMistake.mediaType(type, in: bytes, wanted: "application/json in UTF-8")
    }
}

/// Reads a media type (RFC 9110 section 8.3.1) as far as this service needs it.
package enum MediaType {
    /// True if the field value is `application/json`, without parameters or with `charset=utf-8` alone: JSON is UTF-8
    /// (RFC 8259 section 8.1), so another charset is refused.
    package static func isJSON(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Bool {
        if bytes.equalIgnoringCase(value, "application/json") { return true }
        let (type, parameters) = split(bytes, value)
        return bytes.equalIgnoringCase(type, "application/json")
            && (parameters.isEmpty || bytes.equalIgnoringCase(parameters, "charset=utf-8")
                || bytes.equalIgnoringCase(parameters, "charset=\"utf-8\""))
    }

    /// True if the field value is `application/x-www-form-urlencoded`. Parameters are ignored: the type defines none,
    /// and `charset=UTF-8`, which some clients add, changes nothing.
    static func isForm(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Bool {
        bytes.equalIgnoringCase(split(bytes, value).type, "application/x-www-form-urlencoded")
    }

    private static func split(_ bytes: Span<UInt8>, _ value: Range<Int>) -> (type: Range<Int>, parameters: Range<Int>) {
        var end = value.lowerBound
        while end < value.upperBound, bytes[end] != UInt8(ascii: ";") { end += 1 }
        let parameters = ListElements.trimmed(bytes, min(end + 1, value.upperBound)..<value.upperBound)
        return (ListElements.trimmed(bytes, value.lowerBound..<end), parameters)
    }
}

extension JSONLimits {
    /// The limits of a request's body; the route limits its length. No route knows more than nine names.
    package static let ofRequest = JSONLimits(
        byteCount: VerifyEndpoint.bodyLimit,
        depth: 4,
        memberCount: 16,
        nodeCount: 1_024
    )
}

extension JSONDocument {
    /// The members of a request's body; each value must be a string.
    static func texts(_ body: Span<UInt8>, known: [String]) throws(Rejection) -> [String: String] {
        var document = JSONDocument(limits: .ofRequest)
        try document.parseObject(body)
        var members: [String: String] = [:]
        for name in document.children(of: document.root) {
            let member = document.string(name, in: body)
            guard known.contains(member) else { throw RequestMistake.unknownMember(member, known: known) }
            members[member] = String(decoding: try document.anyText(name, in: body), as: UTF8.self)
        }
        return members
    }

    @inline(__always)
    mutating func parseObject(_ body: Span<UInt8>) throws(Rejection) {
        do throws(JSONError) {
            try parse(body)
        } catch {
            throw RequestMistake.malformedJSON(error, in: body)
        }
        guard kind(root) == .object else { throw Rejection(.invalidRequest, "The body must be a JSON object.") }
    }
}

/// The value of a member, by the node of its name.
extension JSONDocument {
    func anyText(
        _ name: Int,
        in body: Span<UInt8>,
        _ code: Rejection.Code = .invalidRequest
    ) throws(Rejection) -> [UInt8] {
        guard isString(name + 1) else {
            throw Rejection(code, "The member \(string(name, in: body)) must be a string.")
        }
        var text: [UInt8] = []
        appendString(name + 1, in: body, to: &text)
        return text
    }

    /// A string that is not empty.
    func text(_ name: Int, in body: Span<UInt8>) throws(Rejection) -> [UInt8] {
        let text = try anyText(name, in: body)
        guard !text.isEmpty else { throw Rejection(.invalidRequest, "The member \(string(name, in: body)) is empty.") }
        return text
    }

    /// True. The meaning of false would be unclear, so the flag must be left out instead.
    func flag(_ name: Int, in body: Span<UInt8>) throws(Rejection) -> Bool {
        guard kind(name + 1) == .true else {
            let member = string(name, in: body)
            throw Rejection(.invalidRequest, "The member \(member) can only be true; leave it out otherwise.")
        }
        return true
    }

    /// The names in a list of permissions, each once.
    func permissions(
        _ list: Int,
        in body: Span<UInt8>,
        ofLimitedLogin isLimited: Bool
    ) throws(Rejection) -> [String] {
        guard kind(list) == .array else {
            throw Rejection(.invalidRequest, "The member permissions must be an array of strings.")
        }
        var names: [String] = []
        // There are twelve permissions of Limited Login, and a list may contain duplicates.
        for (index, element) in children(of: list).enumerated() {
            guard isString(element), index < 64 else {
                throw Rejection(.invalidRequest, "The member permissions must be an array of strings, 64 at most.")
            }
            let name = string(element, in: body)
            guard !isLimited || Permission(rawValue: name) != nil else {
                throw RequestMistake.unknownPermission(.invalidPermission, name)
            }
            guard PermissionName.isValid(name) else {
                throw Rejection(.invalidPermission, "A permission's name is 1 to 64 of [a-z_.].")
            }
            if !names.contains(name) { names.append(name) }
        }
        return names
    }
}
