internal import LLCrypto
internal import LLHTTP1
internal import LLJOSE
internal import LimitedLogin
internal import Logging

/// One log line for each answer of `/auth`, `/verify` and `/token`, if the setting `audit_log` is on. It has the caller, the
/// person, the outcome and the request's id. It never contains a part of a token, a name or an e-mail address.
///
/// The line names the person by ``hash(appID:userID:)``, and only if the token is good: a refused token proves no
/// person.
struct AuditTrail {
    /// Writes every line; `log_level` has no effect on it.
    let logger: Logger

    /// - Parameters:
    ///   - problem: Nil for a good token.
    ///   - person: The ``hash(appID:userID:)`` of a good token's person.
    func record(
        _ problem: Rejection?,
        _ person: String?,
        _ route: Route,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        requestID: [UInt8]
    ) {
        guard route === Route.verify || route === Route.auth || route === Route.token else { return }
        var facts: Logger.Metadata = [
            "route": "\(route.path)", "method": "\(head.method.name)",
            "outcome": "\(problem?.answer.rawValue ?? "accepted")",
            "request_id": "\(String(decoding: requestID, as: UTF8.self))",
        ]
        facts["user"] = person.map { "\($0)" }
        facts["trace_id"] = TraceParent.traceIDText(head, bytes).map { "\($0)" }
        logger.info("audit", metadata: facts)
    }

    /// SHA-256 of `APP_ID:USER_ID` in hexadecimal. An operator with the user id can compute it and find the person's
    /// lines.
    static func hash(appID: String, userID: String) -> String? {
        try? SHA256.digest(of: Array("\(appID):\(userID)".utf8).span).hexadecimal
    }
}

extension WorkerContext {
    /// A person's name in the audit; nil if there is no audit.
    func auditName(_ appID: @autoclosure () -> String, _ userID: @autoclosure () -> String) -> String? {
        core.auditLogger == nil ? nil : AuditTrail.hash(appID: appID(), userID: userID())
    }

    /// - Parameter app: The Facebook app in the payload; nil if it is the audience.
    func auditName(_ claims: VerifiedClaims, _ payload: [UInt8], app: Range<Int>? = nil) -> String? {
        auditName(
            JSONText.value(payload.span, app ?? claims.audience),
            JSONText.value(payload.span, claims.subject)
        )
    }
}
