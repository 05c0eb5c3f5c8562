internal import FoundationEssentials
internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LimitedLogin

/// The callbacks that Facebook makes (developers.facebook.com/docs/facebook-login/guides/advanced/manual-flow, "Deauthorize
/// Callback"; developers.facebook.com/docs/development/create-an-app/app-dashboard/data-deletion-callback).
package enum CallbackKind: String, Sendable {
    case deauthorize
    case dataDeletion = "data_deletion"
    /// No callback of Facebook's, but the end of a login that a caller asked for.
    case revocation

    var eventType: String {
        switch self {
        case .deauthorize: "login.deauthorized"
        case .dataDeletion: "user.data_deletion_requested"
        case .revocation: "login.revoked"
        }
    }
}

/// The event of a good signed request or of a revocation, in the form for the backend. A repetition of a signed request
/// makes the same event.
package struct CallbackEvent: Sendable {
    let kind: CallbackKind
    let appID: String
    let userID: String
    let issuedAt: Int64
    /// The `webhook-id`. The backend detects a repetition by it.
    let id: String
    /// 32 letters and digits. They follow from the signed request and cannot be guessed without it. A revocation has none.
    var confirmationCode: String?

    /// The end of a login at this moment.
    init(revoking userID: String, of appID: String) {
        (kind, self.appID, self.userID) = (.revocation, appID, userID)
        (issuedAt, id) = (WallClock.unixSeconds(), "msg_" + UUID().uuidString)
    }

    /// Verifies the signed request in a form. Nil for the removal of a page's app, which names no person: the deauthorize
    /// callback acknowledges it.
    init?(_ kind: CallbackKind, _ body: Span<UInt8>, _ worker: WorkerContext) throws(Rejection) {
        let settings = worker.settings
        guard let secrets = settings.appSecrets else { throw Requirement.callbacks.problem }
        guard let form = FormParameters(body, 0..<body.count), form.count(of: "signed_request") == 1,
            let text = form.first("signed_request")
        else { throw Rejection(.invalidRequest, "The form must have signed_request exactly once.") }
        worker.subject = .callback(kind)
        do throws(Rejection) {
            let request = try SignedRequest(
                verifying: text.span,
                secrets: secrets.signers,
                clockSkew: settings.verifier.policy.clockSkew,
                now: .now
            )
            // Only Facebook and this app can predict the signature; to all others it is a random number. Its padding is
            // left out.
            var signature = text.prefix { $0 != UInt8(ascii: ".") }
            while signature.last == UInt8(ascii: "=") { signature.removeLast() }
            guard let name = try? Self.name("webhook", kind, signature),
                let confirmationCode = try? Self.name("confirmation", kind, signature)
            else { throw .requestNotVerifiable }
            self.kind = kind
            (appID, userID, issuedAt) = (request.appID, request.userID, request.issuedAt.wholeSeconds)
            (id, self.confirmationCode) = ("msg_" + name, confirmationCode)
        } catch {
            if error == .requestOfNoPerson, kind == .deauthorize { return nil }
            throw error
        }
    }

    /// 32 hexadecimal digits derived from the request. The digits of another purpose or callback do not reveal them.
    private static func name(
        _ purpose: StaticString,
        _ kind: CallbackKind,
        _ signature: ArraySlice<UInt8>
    ) throws(OpenSSLError) -> String {
        let text = Array("limited-login:\(purpose):\(kind.rawValue):".utf8) + signature
        return String(try SHA256.digest(of: text.span).hexadecimal.prefix(32))
    }

    /// A moment in ISO 8601.
    static func text(of seconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(seconds)).formatted(Date.ISO8601FormatStyle())
    }

    var content: [UInt8] {
        var body: [UInt8] = []
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("type", kind.eventType, to: &body)
        JSONWriter.member("timestamp", Self.text(of: issuedAt), to: &body)
        JSONWriter.name("data", to: &body)
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("app_id", appID, to: &body)
        JSONWriter.member("user_id", userID, to: &body)
        JSONWriter.member("issued_at", Int(issuedAt), to: &body)
        if let confirmationCode { JSONWriter.member("confirmation_code", confirmationCode, to: &body) }
        JSONWriter.raw("}}", to: &body)
        return body
    }
}
