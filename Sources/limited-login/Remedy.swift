internal import LLJOSE
internal import LLService
internal import LimitedLogin

/// The command line's addition to a refusal's hint: facts for a person with the token and the configuration at hand.
struct Remedy {
    let token: [UInt8]
    let configuration: ServiceConfiguration
    let now: NumericDate

    /// A further sentence with a space before it; empty if there is none.
    func addition(to refusal: Rejection) -> String {
        switch refusal.code {
        case .unknownKey, .invalidSignature: foreignIssuer.map { isClaimed($0) } ?? ""
        case .unsupportedAlgorithm, .missingKeyID: claims?.string("iss").map { isClaimed($0) } ?? ""
        case .invalidIssuer: ofIssuer
        case .invalidAudience: configuration.appIDs.configuredApps
        case .expired:
            moment("exp").map {
                " It expired \(described($0)); judge it as of its own time with --at \(max(0, $0.wholeSeconds - 1))."
            } ?? ""
        case .notYetValid:
            moment(refusal.claim ?? "").map { " Its \(refusal.claim ?? "") is \(described($0))." } ?? ""
        case .tooOld: moment("iat").map { " It was issued \(described($0))." } ?? ""
        default: ""
        }
    }

    private var claims: JSONObject? { JSONObject(PastedText(bytes: token).unprovenPayload) }

    private var foreignIssuer: String? {
        claims?.string("iss").flatMap { configuration.issuers.contains($0) ? nil : $0 }
    }

    private func isClaimed(_ issuer: String) -> String {
        " The token says, unproven, that \(quoted(issuer)) issued it."
    }

    private var ofIssuer: String {
        guard let issuer = claims?.string("iss") else { return "" }
        if issuer.hasSuffix("/"), configuration.issuers.contains(String(issuer.dropLast())) {
            return " The token's issuer has a slash at its end that the configured one has not."
        }
        return " You trust \(configuration.issuers.joined(separator: ", "))."
    }

    private func moment(_ claim: String) -> NumericDate? {
        guard let claims, let node = claims.members.first(where: { $0.name == claim })?.node else { return nil }
        return claims.document.double(node, in: claims.bytes.span).flatMap { NumericDate(secondsSince1970: $0) }
    }

    private func described(_ moment: NumericDate) -> String { LocalTime.describe(moment, now: now) }

    private func quoted(_ text: String) -> String { String(text.prefix(80)).debugDescription }
}

extension [String] {
    /// The configured app ids as a sentence with a space before it.
    var configuredApps: String { " You configured \(prefix(5).joined(separator: ", "))." }
}
