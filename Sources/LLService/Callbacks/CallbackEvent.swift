internal import FoundationEssentials
internal import LLCrypto
internal import LLHTTP1
internal import LLSockets
internal import LimitedLogin
internal import Logging

/// The callbacks that Facebook makes (developers.facebook.com/docs/facebook-login/guides/advanced/manual-flow, "Deauthorize
/// Callback"; developers.facebook.com/docs/development/create-an-app/app-dashboard/data-deletion-callback).
package enum CallbackKind: String, CaseIterable, Sendable {
    /// A person removed the app.
    case deauthorize
    /// A person wants the app's backend to delete what it has of them.
    case dataDeletion = "data_deletion"

    var eventType: String {
        switch self {
        case .deauthorize: "login.deauthorized"
        case .dataDeletion: "user.data_deletion_requested"
        }
    }
}

/// The event of a good signed request, as the backend is told. A repetition of the request makes the same event.
package struct CallbackEvent: Sendable {
    let kind: CallbackKind
    let appID: String
    let userID: String
    /// When Facebook made the request, in seconds since 1970.
    let issuedAt: Int64
    /// The `webhook-id`, by which the backend knows a repetition.
    let id: String
    /// 32 letters and digits. They follow from the signed request and cannot be guessed without it.
    let confirmationCode: String

    /// Verifies the signed request in a form. Nothing has happened yet when it is refused.
    ///
    /// Nil for the removal of a page's app, which names no person: the deauthorize callback acknowledges it.
    init?(_ kind: CallbackKind, _ body: Span<UInt8>, _ worker: WorkerParts) throws(Problem) {
        let settings = worker.settings
        // They were there when the head came; a reload in between may have taken them away.
        guard let secrets = settings.appSecrets else { throw Problem(.notFound, Requirement.callbacks.sentence) }
        guard let form = FormParameters(body, 0..<body.count), form.count(of: "signed_request") == 1,
            let text = form.first("signed_request")
        else { throw Problem(.invalidRequest, "The form must have signed_request exactly once.") }
        let now = try ServiceClock.now()
        do throws(SignedRequestRejection) {
            let request = try SignedRequest(
                verifying: text.span,
                secrets: secrets.signers,
                clockSkewSeconds: settings.verifier.policy.clockSkewSeconds,
                now: now
            )
            // The signature is as good as a random number to everybody but Facebook and this app. Its padding is no part.
            var signature = text.prefix { $0 != UInt8(ascii: ".") }
            while signature.last == UInt8(ascii: "=") { signature.removeLast() }
            guard let name = try? Self.name("webhook", kind, signature),
                let confirmationCode = try? Self.name("confirmation", kind, signature)
            else { throw .cannotVerify }
            self.kind = kind
            (appID, userID, issuedAt) = (request.appID, request.userID, request.issuedAt.wholeSeconds)
            (id, self.confirmationCode) = ("msg_" + name, confirmationCode)
        } catch {
            guard error != .cannotVerify else { throw Problem(.internalError, error.description) }
            if error == .noPerson, kind == .deauthorize { return nil }
            worker.core.noteRefusedCallback(kind, error)
            throw Problem(.invalidSignedRequest, error.description)
        }
    }

    /// 32 hexadecimal digits that follow from the request; those of another purpose or callback do not tell them.
    private static func name(
        _ purpose: StaticString,
        _ kind: CallbackKind,
        _ signature: ArraySlice<UInt8>
    ) throws(OpenSSLError) -> String {
        let text = Array("limited-login:\(purpose):\(kind.rawValue):".utf8) + signature
        return String(try SHA256.digest(of: text.span).hexadecimal.prefix(32))
    }

    var content: [UInt8] {
        var body: [UInt8] = []
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("type", kind.eventType, to: &body)
        let moment = Date(timeIntervalSince1970: Double(issuedAt)).formatted(Date.ISO8601FormatStyle())
        JSONWriter.member("timestamp", moment, to: &body)
        JSONWriter.name("data", to: &body)
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("app_id", appID, to: &body)
        JSONWriter.member("user_id", userID, to: &body)
        JSONWriter.member("issued_at", Int(issuedAt), to: &body)
        JSONWriter.member("confirmation_code", confirmationCode, to: &body)
        JSONWriter.raw("}}", to: &body)
        return body
    }
}

/// Counts refused callbacks for the log. The routes are public, so each reason has one line in ten seconds.
struct RefusedCallbacks: Sendable {
    /// Least time between two lines of one reason: 10 s, so that a flood leaves the log readable.
    static let pause = Duration.seconds(10)

    /// For each reason its last line, and those refused since.
    private var reasons: [String: (lineAt: MonotonicInstant, count: Int)] = [:]

    /// - Returns: the number refused since the reason's last line, with this one; nil if no line is due.
    mutating func note(_ reason: String, now: MonotonicInstant) -> Int? {
        let count = (reasons[reason]?.count ?? 0) + 1
        if let last = reasons[reason]?.lineAt, now < last + Self.pause {
            reasons[reason]?.count = count
            return nil
        }
        reasons[reason] = (now, 0)
        return count
    }
}

extension ServiceCore {
    /// Tells the log of a refused callback. The reason quotes nothing of the request.
    fileprivate func noteRefusedCallback(_ kind: CallbackKind, _ rejection: SignedRequestRejection) {
        let reason = rejection.description
        let count = refusedCallbacks.withLock {
            $0.note("\(kind.rawValue) \(reason)", now: MonotonicClock.now())
        }
        guard let count else { return }
        logger.info(
            "callback refused",
            metadata: ["callback": "\(kind.rawValue)", "reason": "\(reason)", "count": "\(count)"]
        )
    }
}
