internal import Bytes
internal import HTTP1
internal import JOSE
internal import Logging
internal import OpenSSL

/// One line for each answer of `/auth` and `/verify`, where the setting `audit_log` is on: who, what, the outcome and the
/// request's id. Nothing of a token, a name or an e-mail address is in it.
///
/// The person is told by ``hash(appID:userID:)``, and only where the token is good: a refused token
/// proves no person.
struct AuditTrail {
    private let logger: Logger

    /// - Parameter logger: writes every line, whatever the level of the others.
    init(_ logger: Logger) { self.logger = logger }

    /// The routes whose answers are told.
    static func covers(_ route: Route) -> Bool { route === Route.verify || route === Route.auth }

    /// Tells of a good token.
    func accepted(
        _ route: Route,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        answer: Span<UInt8>,
        requestID: [UInt8]
    ) {
        let person = route === Route.auth ? Self.bearer(head, bytes) : Self.person(inAnswer: answer)
        write("accepted", person, head, bytes, route, requestID)
    }

    /// Tells of a refusal.
    func refused(
        _ problem: Problem,
        _ route: Route,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        requestID: [UInt8]
    ) {
        write("\(problem.code.text)", nil, head, bytes, route, requestID)
    }

    /// SHA-256 of `APP_ID:USER_ID` in hexadecimal: an operator who has the id finds its lines by it.
    static func hash(appID: String, userID: String) -> String? {
        try? SHA256.digest(of: Array("\(appID):\(userID)".utf8).span).hexadecimal
    }

    private func write(
        _ outcome: String,
        _ person: String?,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ route: Route,
        _ requestID: [UInt8]
    ) {
        var facts: Logger.Metadata = [
            "route": "\(route.path)", "method": "\(head.method.name)", "outcome": "\(outcome)",
            "request_id": "\(String(decoding: requestID, as: UTF8.self))",
        ]
        if let person { facts["user"] = "\(person)" }
        if let traceID = TraceParent.traceID(head, bytes: bytes) {
            var text: [UInt8] = []
            text.append(bytes, traceID)
            facts["trace_id"] = "\(String(decoding: text, as: UTF8.self))"
        }
        logger.info("audit", metadata: facts)
    }

    // MARK: Who

    /// The person of the answer to `POST /verify`. The answer, since what it was made of may be gone: a request can have
    /// waited for a store or for Graph.
    private static func person(inAnswer answer: Span<UInt8>) -> String? {
        person(in: answer, "authentication_token", "audience", "subject")
            ?? person(in: answer, "access_token", "app_id", "user_id")
    }

    /// The person of the token in the request's one `Authorization` field, which was judged and is good.
    private static func bearer(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> String? {
        guard let value = head.value(of: "authorization", in: bytes) else { return nil }
        // Behind the scheme and its spaces.
        var start = value.upperBound
        while start > value.lowerBound, bytes[start - 1] != ASCII.space { start -= 1 }
        let token = bytes.extracting(start..<value.upperBound)
        var payload: [UInt8] = []
        guard let jws = try? JWSCompactSerialization(splitting: token),
            Base64URL.decode(token, jws.payload, into: &payload)
        else { return nil }
        return person(in: payload.span, nil, "aud", "sub")
    }

    /// The hash of two members of an object, or of one in it.
    private static func person(
        in text: Span<UInt8>,
        _ object: StaticString?,
        _ app: StaticString,
        _ user: StaticString
    ) -> String? {
        var document = JSONDocument()
        guard (try? document.parse(text)) != nil, document.count > 0 else { return nil }
        var node = document.root
        if let object {
            guard let inner = document.member(object, of: node, in: text) else { return nil }
            node = inner
        }
        guard var appNode = document.member(app, of: node, in: text),
            let userNode = document.member(user, of: node, in: text)
        else { return nil }
        // An audience may be an array of one.
        if document.kind(appNode) == .array { appNode = document.firstChild(appNode) }
        return hash(appID: document.string(appNode, in: text), userID: document.string(userNode, in: text))
    }
}
