internal import LimitedLogin
internal import VerificationService

/// What to do about a refused token: one sentence for the person at the terminal, who has the token and the
/// configuration before them.
struct Cure {
    let token: [UInt8]
    let configuration: ServiceConfiguration
    /// What the token was judged by.
    let login: ExpectedLogin
    /// The time the token was judged as of.
    let now: NumericDate

    /// The sentence for a refusal.
    func sentence(for rejection: Refusal) -> String {
        switch rejection {
        case .bindingRequired:
            "Give one of --nonce, --raw-nonce and --issued-nonce, --subject for a refresh, or --unbound to leave the login "
                + "aside."
        case .invalidNonce: "Give the nonce exactly as your backend made it: not empty and without white space."
        case .noNonceIssuer: "Set LIMITED_LOGIN_NONCE_SECRET_FILE to the secret that the nonce was issued with."
        case .invalidSubject: "Give the user's id after --subject; it is the claim sub of an earlier token."
        case .invalidKeyThumbprint:
            "Give the key's RFC 7638 thumbprint as an earlier answer had it (key_thumbprint): 43 digits of base64url."
        case .unknownApp: "Give an app id that LIMITED_LOGIN_APP_IDS names."
        case .malformedToken(let fault): PastedText(token).cure ?? malformed(fault)
        case .notAnIDToken(let kind): foreign(kind)
        case .unsupportedAlgorithm(let name): algorithm(name)
        case .unsupportedCriticalHeader:
            "Facebook's tokens demand no extension, so find out who made this one, and take the token from "
                + "AuthenticationToken.current.tokenString instead."
        case .missingKeyID:
            "Facebook's tokens always name their key with kid, so find out who made this one" + glance + "."
        case .unknownKey: unknownKey
        case .keysUnavailable: "Try again when the issuer's keys can be fetched; limited-login keys shows why not."
        case .invalidSignature: signature
        default: ClaimCure(cure: self).sentence(for: rejection)
        }
    }

    private func malformed(_ fault: Refusal.MalformedToken) -> String {
        switch fault {
        case .empty: "Nothing was given: pass what the app reads from AuthenticationToken.current.tokenString."
        case .tooLong: "An id token has about 1,000 characters, so look what else was pasted along with it."
        case .wrongPartCount(let count) where count < 3:
            "The text ends too early, so copy the token anew, whole, up to the end of its third part."
        case .wrongPartCount: "Look for two tokens pasted one behind the other, or a full stop at the end."
        case .jsonSerialization: "Pass the token itself, which begins with eyJ, not the JSON around it."
        case .emptyPart(.signature): "The signature was cut off, so copy the token anew, up to its last character."
        case .emptyPart: "A part between the full stops was cut out, so copy the token anew, whole."
        case .invalidBase64URL(.signature):
            "The end of the token is damaged or cut off, so copy the token anew, up to its last character."
        case .invalidBase64URL, .invalidJSON, .notAnObject:
            "The token was changed or cut on its way, so pass it on as a string, unchanged, from "
                + "AuthenticationToken.current.tokenString to here."
        }
    }

    private func foreign(_ kind: Refusal.ForeignToken) -> String {
        switch kind {
        case .accessToken:
            "This is an access token: have the app send AuthenticationToken.current.tokenString, not "
                + "AccessToken.current.tokenString, or accept such tokens (LIMITED_LOGIN_ACCESS_TOKENS)."
        case .encrypted, .encryptionHeader, .nested:
            "Facebook neither encrypts nor nests id tokens, so have the app send "
                + "AuthenticationToken.current.tokenString instead of this one."
        case .type:
            "The header says that this is another kind of token (Facebook's say JWT), so have the app send "
                + "AuthenticationToken.current.tokenString."
        }
    }

    private func algorithm(_ name: String?) -> String {
        if name == "none" { return "Never accept a token that nobody signed: find out who sent it" + glance + "." }
        if name?.hasPrefix("HS") == true {
            return "Somebody signed this with a shared secret, which Facebook never does, so find out who made it: "
                + "a test, or your own session token" + glance + "."
        }
        return "Facebook signs with RS256 alone, so find out who issued this token" + glance + "."
    }

    private var unknownKey: String {
        if let issuer = unverifiedIssuer, !configuration.issuers.contains(issuer) {
            return "The token says, unproven, that \(quoted(issuer)) issued it: send a token of Facebook's Limited "
                + "Login, or set LIMITED_LOGIN_ISSUERS and LIMITED_LOGIN_JWKS_URLS to that issuer's."
        }
        return
            "Compare the key id with what limited-login keys lists: a token older than a month outlives its key, and a "
            + "token of a test issuer needs that issuer's --jwks."
    }

    private var signature: String {
        if let issuer = unverifiedIssuer, !configuration.issuers.contains(issuer) {
            return "Keys of Facebook cannot prove a token that says \(quoted(issuer)) issued it: check --jwks."
        }
        return "Some character of the token was changed, so compare it with what the app has; if it is the same there, "
            + "somebody forged it, or --jwks holds other keys under the same id."
    }

    /// Who the token says issued it, which nothing has proved.
    private var unverifiedIssuer: String? { UnverifiedGlance.issuer(of: token) }

    private var glance: String {
        guard let issuer = unverifiedIssuer else { return "" }
        return " (it says, unproven, that \(quoted(issuer)) did)"
    }

    private func quoted(_ text: String) -> String { String(text.prefix(80)).debugDescription }
}
