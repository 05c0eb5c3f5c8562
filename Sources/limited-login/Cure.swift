internal import LLService
internal import LLStandIn
internal import LimitedLogin

/// The remedy for a refused token: one sentence for a person with the token and the configuration at hand.
struct Cure {
    let token: [UInt8]
    let configuration: ServiceConfiguration
    /// The binding by which the token was judged.
    let binding: BindingKind
    /// The time for which the token was judged.
    let now: NumericDate

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
        case .tokenTooLong:
            "Look for what was pasted along with the token, or have the app ask for no user_friends, which puts the id of each "
                + "friend into it."
        case .malformedToken(let fault): PastedText(bytes: token).cure ?? malformed(fault)
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
        default: claimSentence(for: rejection)
        }
    }

    private func malformed(_ fault: Refusal.MalformedToken) -> String {
        switch fault {
        case .empty: "Nothing was given: pass what the app reads from AuthenticationToken.current.tokenString."
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
        if let issuer = foreignIssuer {
            return "The token says, unproven, that \(quoted(issuer)) issued it: send a token of Facebook's Limited "
                + "Login, or set LIMITED_LOGIN_ISSUERS and LIMITED_LOGIN_JWKS_URLS to that issuer's."
        }
        return
            "Compare the key id with what limited-login keys lists: a token older than a month outlives its key, and a "
            + "token of a test issuer needs that issuer's --jwks."
    }

    private var signature: String {
        if let issuer = foreignIssuer {
            return "Keys of Facebook cannot prove a token that says \(quoted(issuer)) issued it: check --jwks."
        }
        return "Some character of the token was changed, so compare it with what the app has; if it is the same there, "
            + "somebody forged it, or --jwks holds other keys under the same id."
    }

    /// The issuer that the token names, unproven.
    private var unverifiedIssuer: String? { PastedText(bytes: token).unprovenIssuer }

    /// The same, if it is none of the configured issuers.
    private var foreignIssuer: String? { unverifiedIssuer.flatMap { configuration.issuers.contains($0) ? nil : $0 } }

    private var glance: String { unverifiedIssuer.map { " (it says, unproven, that \(quoted($0)) did)" } ?? "" }

    private func quoted(_ text: String) -> String { String(text.prefix(80)).debugDescription }

    /// The remedy for a token that Facebook signed but whose claims are refused.
    private func claimSentence(for rejection: Refusal) -> String {
        switch rejection {
        case .missingClaim(.nonce):
            "The login was begun without a nonce: pass one to LoginConfiguration, or judge by --subject."
        case .missingClaim(let claim), .malformedClaim(let claim, _):
            "No token of Facebook's lacks a sound \(claim.spelling), so find out which issuer made this one; for a test "
                + "issuer, mend its claim \(claim.spelling)."
        case .invalidIssuer(let issuer): issuerSentence(issuer)
        case .invalidAudience(let fault): audience(fault)
        case .expired(let moment, _):
            "It expired \(LocalTime.describe(moment, now: now)): have the app log in again for a new one, or judge "
                + "this one as of its own time with --at \(max(0, moment.wholeSeconds - 1))."
        case .notYetValid(let claim, let moment, _):
            "Its \(claim.spelling) is \(LocalTime.describe(moment, now: now)): set this machine's clock right (is "
                + "NTP running?), or allow for it with --clock-skew-seconds."
        case .tooOld(let issuedAt, let maximum, _):
            "It was issued \(LocalTime.describe(issuedAt, now: now)): have the app log in again, or raise "
                + "LIMITED_LOGIN_MAX_TOKEN_AGE_SECONDS above \(maximum)."
        case .nonceMismatch(let fault): nonce(fault)
        case .nonceNotIssued:
            "Have the app log in with a nonce of POST /nonces for this very app id, issued with the secret that "
                + "LIMITED_LOGIN_NONCE_SECRET_FILE holds. For the refresh of a session give --subject alone."
        case .nonceExpired(.over(let moment, _)):
            "Its nonce was good until \(LocalTime.describe(moment, now: now)): for a token that the SDK refreshed add "
                + "--subject, for a login ask for a new nonce when the person taps the button, not before."
        case .nonceExpired(.beyondMemory): "Begin the login anew with a new nonce of POST /nonces."
        case .nonceUsed:
            "For a token that the SDK refreshed add --subject (in requests, subject beside issued_nonce), for a login begin "
                + "anew with a new nonce of POST /nonces."
        case .loginRevoked:
            "The person or your backend ended this login after the token was issued: have the person log in anew."
        case .tokenReplayed: "Have the app log in again for a token of its own."
        case .subjectMismatch:
            "The token is another person's than --subject says: end that session and begin one with a new login."
        case .keyThumbprintMismatch:
            "Compare --key-thumbprint with cnf.jkt of the login's own token: another key is another device's, and an app whose "
                + "SDK is older than 18.1 has none."
        case .accessTokenHashMismatch:
            "Give the access token of the very login that this token came from: a Limited Login has none, and a refreshed "
                + "token none of its own."
        case .trackingNotAllowed:
            "Have the app log in with LoginConfiguration(tracking: .limited), or set LIMITED_LOGIN_TRACKING to any."
        default: ""
        }
    }

    private func issuerSentence(_ issuer: String) -> String {
        if issuer.hasSuffix("/"), configuration.issuers.contains(String(issuer.dropLast())) {
            return
                "\(quoted(issuer)) has a slash at its end that the configured issuer has not: Facebook sends none, so "
                + "look who issued it."
        }
        return "Issued by \(quoted(issuer)), you trust \(configuration.issuers.joined(separator: ", ")): is "
            + "LIMITED_LOGIN_ISSUERS right, and is it a token of Facebook's?"
    }

    private func audience(_ fault: Refusal.AudienceFault) -> String {
        switch fault {
        case .otherApp(let app):
            "Issued for app \(quoted(app)), you configured "
                + "\(configuration.appIDs.prefix(5).joined(separator: ", ")): is LIMITED_LOGIN_APP_IDS right, and "
                + "FacebookAppID in the app's Info.plist?"
        case .severalAudiences:
            "Facebook issues a token for one app, so find out who made one for several."
        case .otherAuthorizedParty(let app):
            "It was given to \(quoted(app)) to use, so have your own app log in."
        }
    }

    private func nonce(_ fault: Refusal.NonceFault) -> String {
        switch fault {
        case .empty: "The login was begun without a nonce: pass one to LoginConfiguration(tracking:nonce:)."
        case .hashed: "The app hashes its nonce: give the same value after --raw-nonce (in requests, as raw_nonce)."
        case .notHashed: "The app does not hash its nonce: give the same value after --nonce (in requests, as nonce)."
        case .different where binding == .rawNonce:
            "Give the raw nonce of the very login that this token came from, or --nonce if the app does not hash."
        case .different:
            "Give the nonce of the very login that this token came from; if the SDK refreshed it silently or because the app "
                + "asked, its nonce is the SDK's own, so judge by --subject alone."
        }
    }
}
