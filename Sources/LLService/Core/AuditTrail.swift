internal import LLBytes
internal import LLCrypto
internal import LLHTTP1
internal import LLJOSE
internal import Logging

/// One log line for each answer of `/auth`, `/verify` and `/token`, if the setting `audit_log` is on. It has the caller, the
/// person, the outcome and the request's id. It never contains a part of a token, a name or an e-mail address.
///
/// The line names the person by ``hash(appID:userID:)``, and only if the token is good: a refused token proves no
/// person.
struct AuditTrail {
    /// Writes every line; `log_level` has no effect on it.
    let logger: Logger

    /// - Parameter problem: nil for a good token.
    func tell(
        _ problem: Problem?,
        _ route: Route,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        answer: Span<UInt8>,
        requestID: [UInt8]
    ) {
        guard route === Route.verify || route === Route.auth || route === Route.token else { return }
        var facts: Logger.Metadata = [
            "route": "\(route.path)", "method": "\(head.method.name)", "outcome": "\(problem?.code.text ?? "accepted")",
            "request_id": "\(String(decoding: requestID, as: UTF8.self))",
        ]
        if problem == nil {
            // For `/verify` the person is read from the answer: after a wait the claims may be gone.
            let person =
                route === Route.auth
                ? Self.bearer(head, bytes)
                : Self.exchanged(answer)
                    ?? Self.person(in: answer, "authentication_token", "audience", "subject")
                    ?? Self.person(in: answer, "access_token", "app_id", "user_id")
                    ?? Self.person(in: answer, "player", "app_id", "asid")
                    ?? Self.person(in: answer, "player", "app_id", "player_id")
            facts["user"] = person.map { "\($0)" }
        }
        facts["trace_id"] = TraceParent.traceIDText(head, bytes).map { "\($0)" }
        logger.info("audit", metadata: facts)
    }

    /// SHA-256 of `APP_ID:USER_ID` in hexadecimal. An operator with the user id can compute it and find the person's
    /// lines.
    static func hash(appID: String, userID: String) -> String? {
        try? SHA256.digest(of: Array("\(appID):\(userID)".utf8).span).hexadecimal
    }

    /// The person of the token in the request's only `Authorization` field. The token was judged and is good.
    private static func bearer(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> String? {
        guard let value = head.value(of: "authorization", in: bytes) else { return nil }
        // The token begins after the scheme and its spaces.
        var start = value.upperBound
        while start > value.lowerBound, bytes[start - 1] != ASCII.space { start -= 1 }
        return person(of: bytes.extracting(start..<value.upperBound))
    }

    /// The person of the token in an answer of `/token`; nil for any other answer.
    private static func exchanged(_ answer: Span<UInt8>) -> String? {
        var document = JSONDocument()
        guard (try? document.parse(answer)) != nil, document.count > 0,
            let node = document.member("access_token", of: document.root, in: answer), document.isString(node)
        else { return nil }
        return person(of: answer.extracting(document.range(node)))
    }

    /// The person of a good token. A token that was issued here names the Facebook app apart from its audience.
    private static func person(of token: Span<UInt8>) -> String? {
        var payload: [UInt8] = []
        guard let jws = try? JWSCompactSerialization(splitting: token),
            Base64URL.decode(token, jws.payload, into: &payload)
        else { return nil }
        return person(in: payload.span, nil, "client_id", "sub") ?? person(in: payload.span, nil, "azp", "sub")
            ?? person(in: payload.span, nil, "aud", "sub")
    }

    /// The hash of two members of an object, or of an object inside it.
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
        // An audience may be an array with one element.
        if document.kind(appNode) == .array { appNode = document.firstChild(appNode) }
        return hash(appID: document.string(appNode, in: text), userID: document.string(userNode, in: text))
    }
}
