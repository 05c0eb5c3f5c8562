internal import LimitedLogin
internal import VerificationService

/// What to do about a token that Facebook signed but whose claims are refused.
struct ClaimCure {
    let cure: Cure

    func sentence(for rejection: Refusal) -> String {
        switch rejection {
        case .missingClaim(.nonce):
            "The login was begun without a nonce: pass one to LoginConfiguration, or judge by --subject."
        case .missingClaim(let claim), .malformedClaim(let claim, _):
            "No token of Facebook's lacks a sound \(claim.rawValue), so find out which issuer made this one; for a test "
                + "issuer, mend its claim \(claim.rawValue)."
        case .invalidIssuer(let issuer): issuerSentence(issuer)
        case .invalidAudience(let fault): audience(fault)
        case .expired(let moment, _):
            "It expired \(LocalTime.describe(moment, now: cure.now)): have the app log in again for a new one, or judge "
                + "this one as of its own time with --at \(max(0, moment.wholeSeconds - 1))."
        case .notYetValid(let claim, let moment, _):
            "Its \(claim.rawValue) is \(LocalTime.describe(moment, now: cure.now)): set this machine's clock right (is "
                + "NTP running?), or allow for it with --clock-skew-seconds."
        case .tooOld(let issuedAt, let maximum, _):
            "It was issued \(LocalTime.describe(issuedAt, now: cure.now)): have the app log in again, or raise "
                + "LIMITED_LOGIN_MAX_TOKEN_AGE_SECONDS above \(maximum)."
        case .nonceMismatch(let fault): nonce(fault)
        case .nonceNotIssued:
            "Have the app log in with a nonce of POST /nonces for this very app id, issued with the secret that "
                + "LIMITED_LOGIN_NONCE_SECRET_FILE holds."
        case .nonceExpired(.over(let moment, _)):
            "Its nonce was good until \(LocalTime.describe(moment, now: cure.now)): for a token that the SDK refreshed add "
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
        let text = issuer.prefix(80).debugDescription
        if issuer.hasSuffix("/"), cure.configuration.issuers.contains(String(issuer.dropLast())) {
            return
                "\(text) has a slash at its end that the configured issuer has not: Facebook sends none, so look who "
                + "issued it."
        }
        return "Issued by \(text), you trust \(cure.configuration.issuers.joined(separator: ", ")): is "
            + "LIMITED_LOGIN_ISSUERS right, and is it a token of Facebook's?"
    }

    private func audience(_ fault: Refusal.AudienceFault) -> String {
        switch fault {
        case .otherApp(let app):
            "Issued for app \(app.prefix(80).debugDescription), you configured "
                + "\(cure.configuration.appIDs.prefix(5).joined(separator: ", ")): is LIMITED_LOGIN_APP_IDS right, and "
                + "FacebookAppID in the app's Info.plist?"
        case .severalAudiences:
            "Facebook issues a token for one app, so find out who made one for several."
        case .otherAuthorizedParty(let app):
            "It was given to \(app.prefix(80).debugDescription) to use, so have your own app log in."
        }
    }

    private func nonce(_ fault: Refusal.NonceFault) -> String {
        switch fault {
        case .empty: "The login was begun without a nonce: pass one to LoginConfiguration(tracking:nonce:)."
        case .hashed: "The app hashes its nonce: give the same value after --raw-nonce (in requests, as raw_nonce)."
        case .notHashed: "The app does not hash its nonce: give the same value after --nonce (in requests, as nonce)."
        case .different where cure.login.binding == .rawNonce:
            "Give the raw nonce of the very login that this token came from, or --nonce if the app does not hash."
        case .different:
            "Give the nonce of the very login that this token came from; if the SDK refreshed it silently or because the app "
                + "asked, its nonce is the SDK's own, so judge by --subject alone."
        }
    }
}
