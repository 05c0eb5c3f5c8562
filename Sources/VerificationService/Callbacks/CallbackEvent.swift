internal import Bytes
internal import FoundationEssentials
internal import LimitedLogin
internal import OpenSSL

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

/// What a good signed request tells, as the backend is told. A repetition of the request makes the same event.
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

    /// - Parameter text: The signed request as it came.
    init(_ kind: CallbackKind, _ request: SignedRequest, text: Span<UInt8>) throws(OpenSSLError) {
        self.kind = kind
        appID = request.appID
        userID = request.userID
        issuedAt = request.issuedAt.wholeSeconds
        // The signature is as good as a random number to everybody but Facebook and this app. Its padding is no part.
        var end = text.firstOffset(of: UInt8(ascii: "."), from: 0)
        while end > 0, text[end - 1] == UInt8(ascii: "=") { end -= 1 }
        let signature = text.extracting(0..<end)
        id = "msg_" + (try Self.name("webhook", kind, signature))
        confirmationCode = try Self.name("confirmation", kind, signature)
    }

    /// 32 hexadecimal digits that follow from the request; those of another purpose or callback do not tell them.
    private static func name(
        _ purpose: StaticString,
        _ kind: CallbackKind,
        _ signature: Span<UInt8>
    ) throws(OpenSSLError) -> String {
        var text = Array("limited-login:\(purpose):\(kind.rawValue):".utf8)
        text.append(signature)
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
