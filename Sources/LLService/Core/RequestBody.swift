internal import LLBytes
internal import LLHTTP
package import LLJOSE
internal import LimitedLogin

/// The body of a route. The head alone decides about the media type (RFC 9110 sections 8.3, 8.4, 15.5.16).
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

    var limit: Int? { if case .readBody(let limit) = decision { limit } else { nil } }

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

    /// True for `application/x-www-form-urlencoded`, which defines no parameters; `charset=UTF-8` changes nothing.
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
    package static let ofRequest =
        JSONLimits(byteCount: VerifyEndpoint.bodyLimit, depth: 4, memberCount: 16, nodeCount: 1_024)
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

    /// The value of a member, by the node of its name.
    func anyText(
        _ name: Int,
        in body: Span<UInt8>,
        _ code: @autoclosure () -> Rejection.Code = .invalidRequest
    ) throws(Rejection) -> [UInt8] {
        guard isString(name + 1) else {
            throw Rejection(code(), "The member \(string(name, in: body)) must be a string.")
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
    func permissions(_ list: Int, in body: Span<UInt8>, ofLimitedLogin isLimited: Bool) throws(Rejection) -> [String] {
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

/// Sentences about a wrong request: they quote the client's word and suggest the nearest right one. A word is quoted in
/// `detail` alone, and only if it matches `[A-Za-z_]{1,32}`: it is then short and harmless.
enum RequestMistake {
    /// The sentence about an unknown word: `subject` begins it ("The member"), and `fault` ends it ("is unknown").
    static func sentence(_ word: String, _ subject: String, _ fault: String, known: [String]) -> String {
        guard isTold(word) else { return "\(subject) \(fault)." }
        let proposal = nearest(word, known).map { "; did you mean \($0)?" } ?? "."
        return "\(subject) \(word) \(fault)\(proposal)"
    }

    static func unknownMember(_ word: String, known: [String]) -> Rejection {
        let names =
            known.count > 1 ? known.dropLast().joined(separator: ", ") + " and " + known[known.count - 1] : known[0]
        return Rejection(.invalidRequest, sentence(word, "The body's member", "is unknown", known: known))
            .hint("Send no other members than \(names).")
    }

    static func unknownPermission(_ code: Rejection.Code, _ word: String) -> Rejection {
        let known = Permission.allCases.map(\.rawValue)
        return Rejection(code, sentence(word, "The permission", "is none of Limited Login's twelve", known: known))
            .hint("Name only permissions of Limited Login: \(known.joined(separator: ", ")).")
    }

    static func isTold(_ word: String) -> Bool {
        (1...32).contains(word.utf8.count)
            && word.utf8.allSatisfy {
                $0 == UInt8(ascii: "_") || ASCII.isAlphanumeric($0) && ASCII.digit($0) == nil
            }
    }

    /// The known word most likely meant: the same but for case and `_`, one that ends with it, or one at most two letters
    /// away.
    static func nearest(_ word: String, _ known: [String]) -> String? {
        let folded = fold(word)
        guard folded.count > 2 else { return nil }
        return known.first { fold($0) == folded }
            ?? known.first { $0.hasSuffix("_" + word.lowercased()) }
            ?? known.first { Spelling.isNear(fold($0), folded, edits: folded.count < 5 ? 1 : 2) }
    }

    private static func fold(_ word: String) -> String { word.lowercased().filter { $0 != "_" && $0 != "-" } }

    static func malformedJSON(_ error: JSONError, in body: Span<UInt8>) -> Rejection {
        let isByte = [.unexpectedByte, .trailingBytes].contains(error.reason) && error.offset < body.count
        let fault = isByte ? "unexpected \(name(of: body[error.offset])) at byte \(error.offset)" : "\(error)"
        return Rejection(.invalidRequest, "The body is not acceptable JSON: \(fault).")
            .hint("Send one JSON object with names and texts in double quotes, and no comma before a closing bracket.")
    }

    private static func name(of byte: UInt8) -> String {
        if ASCII.isVisible(byte) { return String(UnicodeScalar(byte)) }
        return switch byte {
        case 0x20: "space"
        case 0x09: "tab"
        case 0x0A, 0x0D: "line break"
        default: "0x" + String(byte, radix: 16, uppercase: true)
        }
    }

    static let severalNonces = Rejection(
        .invalidRequest,
        "Only one of nonce and raw_nonce may be given; issued_nonce may stand beside it."
    )

    /// - Parameter type: The value of `Content-Type`; nil without that field.
    static func mediaType(_ type: Range<Int>?, in bytes: Span<UInt8>, wanted: String) -> Rejection {
        let fault: String
        if let type {
            let text = String(decoding: type.map { bytes[$0] }.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self)
            // A value with digits is not quoted, because it could be a misplaced nonce or token.
            let isTold =
                (1...64).contains(text.utf8.count)
                && text.utf8.allSatisfy {
                    ASCII.isAlphanumeric($0) && ASCII.digit($0) == nil || "/.+- ".utf8.contains($0)
                }
            // JSON with another charset, or with a parameter that the type does not have.
            let excess = wanted.hasPrefix(text.lowercased()) ? " with another parameter than charset=utf-8" : ""
            fault = "The body is declared as \(isTold ? text : "another type")\(isTold ? excess : "")"
        } else {
            fault = "The request has no Content-Type"
        }
        return Rejection(.unsupportedMediaType, "\(fault); it must be \(wanted).")
            .hint(
                wanted.hasPrefix("application/json")
                    ? "Send Content-Type: application/json; with curl, add -H 'Content-Type: application/json'."
                    : "Send Content-Type: application/x-www-form-urlencoded, as curl -d does."
            )
    }

    /// The sentences about bytes that are no request but another protocol's beginning; nil for others.
    static func protocolName(_ bytes: Span<UInt8>) -> (detail: String, hint: String)? {
        let start = (0..<min(16, bytes.count)).map { bytes[$0] }
        // The PROXY protocol, versions 1 and 2; the parser skips line breaks before a request.
        if start.starts(with: "PROXY ".utf8) || start.contains("\0\r\nQUIT\n".utf8) {
            return (
                "The bytes are a header of the PROXY protocol, which is not spoken here.",
                "Switch the PROXY protocol off at the load balancer for this target."
            )
        }
        // A TLS record with a handshake (RFC 8446 section 5.1).
        if start.starts(with: [0x16, 0x03]) {
            return (
                "The bytes are a TLS handshake, and this listener speaks plain HTTP.",
                "Let the load balancer speak HTTP to this port, or set tls_certificate_file and tls_key_file."
            )
        }
        return nil
    }

    static func method(_ method: StaticString, allowed: [HTTPMethod]) -> Rejection {
        let names = allowed.map { "\($0.name)" }.joined(separator: " or ")
        return Rejection(.methodNotAllowed, "The method \(method) is not allowed at this path: use \(names).")
            .hint("Use \(names).")
    }

    static func path(_ path: Range<Int>, in bytes: Span<UInt8>, routes: [Route]) -> Rejection {
        if let other = absent.first(where: { bytes.equal(path, $0.path) }) {
            return Rejection(.notFound, other.detail, hint: other.hint)
        }
        let isService = routes.contains { $0.listeners == [.service] }
        // This listener's routes were compared before, so a route that matches is the other listener's.
        if Route.table.contains(where: { $0.matches(path, bytes) }) {
            let row = isService ? Settings.all.adminListen.row : Settings.all.listen.row
            return Rejection(.notFound)
                .detail("This path is on the other listener, the \(isService ? "operators'" : "service's").")
                .hint("Ask the address that \(row.name) (\(row.environmentName)) names.")
        }
        let proposal = nearestPath(path, in: bytes, routes)
        return Rejection(.notFound)
            .detail("There is nothing at this path" + (proposal.map { "; did you mean \($0)?" } ?? "."))
            .hint(
                isService
                    ? "Send tokens to POST /verify; GET /openapi.json lists all paths."
                    : "This listener is the operators': GET /metrics, /livez and /readyz."
            )
    }

    /// Paths of other services, and what is here instead.
    private static let absent: [(path: StaticString, detail: String, hint: String)] = [
        (
            "/", "The service has no page at /, and no health check.",
            "Let the load balancer probe /readyz; on GKE by a HealthCheckPolicy or a BackendConfig (config/kubernetes)."
        ),
        // The metadata name this path, because OpenID Connect Discovery requires an `authorization_endpoint`.
        (
            "/authorize", "No login begins at this path: people log in with Facebook, in the app.",
            "Have the app log in, and exchange its token at POST /token."
        ),
        (
            "/userinfo", "There is no UserInfo endpoint: an issued token has sub and the claims of token_claims.",
            "Read the token's claims, or ask POST /introspect."
        ),
        (
            "/revoke", "One token alone cannot be revoked (RFC 7009): issued tokens end after token_lifetime_seconds.",
            "End all logins of a person with POST /revocations."
        ),
        (
            "/.well-known/oauth-protected-resource",
            "This service is no protected resource (RFC 9728): the API behind the gateway is one.",
            "Let that API publish the document; its authorization_servers is the setting issuer."
        ),
    ]

    private static func nearestPath(_ path: Range<Int>, in bytes: Span<UInt8>, _ routes: [Route]) -> String? {
        // Four times the longest of the table.
        guard path.count <= 128 else { return nil }
        let slash = UInt8(ascii: "/")
        var end = path.upperBound
        while end > path.lowerBound + 1, bytes[end - 1] == slash { end -= 1 }
        // The comparison also skips a prefix, such as /v1 or /api.
        for start in path.lowerBound..<end where bytes[start] == slash {
            if let route = routes.first(where: { $0.matches(start..<end, bytes) }) { return "\(route.path)" }
        }
        let text = String(decoding: (path.lowerBound..<end).map { bytes[$0] }, as: UTF8.self).lowercased()
        return routes.map { "\($0.path)" }.first { Spelling.isNear(text, $0, edits: 2) }
    }
}
