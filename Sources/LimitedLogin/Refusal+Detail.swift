extension Refusal {
    /// One or two sentences that a person can act on.
    package var detail: String {
        switch self {
        case .bindingRequired:
            "Give one of nonce, raw_nonce and issued_nonce, and for a refresh subject: without them the token proves nothing "
                + "about this login."
        case .invalidNonce: "The nonce given is empty or holds white space, so no login can have used it."
        case .invalidSubject: "The subject given is empty."
        case .invalidKeyThumbprint: "The key thumbprint given is not 43 digits of base64url (RFC 7638)."
        case .noNonceIssuer: "No nonces are issued here, so the token's cannot be one of them."
        case .unknownApp: "The app ID given is not one of the configured apps."
        case .tokenTooLong:
            "The token is longer than \(VerificationLimits.tokenByteCount) bytes, so it is not read."
        case .malformedToken(let fault): fault.detail
        case .notAnIDToken(let kind): kind.detail
        case .unsupportedAlgorithm(let name): Self.algorithmDetail(name)
        case .unsupportedCriticalHeader:
            "The header demands an extension with crit or b64; an id token from Facebook has neither."
        case .missingKeyID: "The header does not name its key: kid is missing, empty or not a string."
        case .unknownKey(let keyID):
            "No published key has the key ID \"\(keyID)\": the token is forged, or its key was withdrawn."
        case .keysUnavailable: VerificationUnavailable.keys.description
        case .invalidSignature(.wrongLength): "The signature has not the length of the key it names."
        case .invalidSignature(.mismatch):
            "The signature is not the one of the key it names: the token was altered or forged."
        default: claimDetail
        }
    }

    private var claimDetail: String {
        switch self {
        case .missingClaim(let claim): "The claim \(claim.spelling) is missing."
        case .malformedClaim(let claim, let fault): "The claim \(claim.spelling) \(fault.clause)."
        case .invalidIssuer(let issuer): "The issuer \(quoted(issuer)) is not one of the configured issuers."
        case .invalidAudience(.otherApp(let app)):
            "The audience \(quoted(app)) is not one of the configured apps, or not the app given."
        case .invalidAudience(.severalAudiences):
            "The token names several audiences; one for this app alone is needed."
        case .invalidAudience(.otherAuthorizedParty(let app)):
            "The authorized party \(quoted(app)) is not the token's audience."
        case .expired(let date, let now):
            "The token expired \(Self.seconds(from: date, to: now)) ago, at \(date.wholeSeconds)."
        case .notYetValid(let claim, let date, let now):
            "The claim \(claim.spelling) lies \(Self.seconds(from: now, to: date)) in the future: a clock is wrong."
        case .tooOld(let date, let maximum, let now):
            "The token was issued \(Self.seconds(from: date, to: now)) ago; at most \(maximum) s are allowed."
        case .nonceMismatch(.empty):
            "The token's nonce is empty: the login was started without one, so nothing ties it to this login."
        case .nonceMismatch(.different): "The token's nonce is not the one given: it belongs to another login."
        case .nonceMismatch(.hashed):
            "The token's nonce is the SHA-256 of the nonce given: the client hashes it, so give it as raw_nonce."
        case .nonceMismatch(.notHashed):
            "The token's nonce is the raw nonce itself, not its SHA-256: the client does not hash it, so give it as nonce."
        case .nonceNotIssued:
            "The token's nonce was not issued here for this app: it belongs to a login begun elsewhere, or the secret it was "
                + "issued with was taken away. If the SDK refreshed the token of a session, give the session's user as "
                + "subject, alone."
        case .nonceExpired(.over(let date, let now)):
            "The token's nonce expired \(Self.seconds(from: date, to: now)) ago: begin the login anew, with a new nonce. If "
                + "the SDK refreshed the token of a session, give the session's user as subject beside the nonce."
        case .nonceExpired(.beyondMemory):
            "The token's nonce was issued before the present memory of used nonces began (the service or its store was "
                + "restarted), so it may have been used: begin the login anew, with a new nonce."
        case .nonceUsed:
            "The token's nonce was used before: every login needs a nonce of its own. If the SDK refreshed the token of a "
                + "session, give the session's user as subject beside the nonce."
        case .tokenReplayed(.remembered):
            "The token was accepted before, and each is accepted once: have the app log in again."
        case .tokenReplayed(.beyondMemory):
            "The token was issued before the present memory of accepted tokens began (the service or its store was "
                + "restarted), so it may have been accepted before: have the app log in again."
        case .loginRevoked:
            "The login was revoked after this token was issued (or in the same second): have the person log in anew."
        case .subjectMismatch: "The token belongs to another person than the subject given."
        case .keyThumbprintMismatch:
            "The token is not bound to the key given: it comes from another device, or from an app without such a key."
        case .accessTokenHashMismatch:
            "The access token given was not issued together with this id token: at_hash is missing or another's."
        case .trackingNotAllowed:
            "The token came with an access token, so this was not a Limited Login; only that is allowed here."
        default: ""
        }
    }

    private static func algorithmDetail(_ name: String?) -> String {
        guard let name else { return "The header's alg is missing or no algorithm's name; only RS256 is accepted." }
        if name.hasPrefix("HS") {
            return "The token is signed with a shared secret (\(name)); Facebook signs id tokens with RS256."
        }
        return "The algorithm \(name) is not accepted; Facebook signs id tokens with RS256."
    }

    private static func seconds(from start: NumericDate, to end: NumericDate) -> String {
        // Both are from 0 to 2⁵³, so the difference fits.
        "\(max(0, end.wholeSeconds - start.wholeSeconds)) s"
    }
}

/// A value in quotation marks on one line, cut to a useful length. Only for claims of a token with a good signature.
private func quoted(_ text: String) -> String {
    text.count > 80 ? String(text.prefix(80)).debugDescription + "…" : text.debugDescription
}

extension Refusal.MalformedToken {
    fileprivate var detail: String {
        switch self {
        case .empty: "The token is empty."
        case .wrongPartCount(let count): "An id token has three parts separated by full stops; this has \(count)."
        case .jsonSerialization: "The token is in the JSON serialization; only the compact one is accepted."
        case .emptyPart(.signature): "The signature is empty: the token is not signed."
        case .emptyPart(let part): "The \(part.rawValue) is empty."
        case .invalidBase64URL(let part): "The \(part.rawValue) is not base64url as RFC 7515 spells it."
        case .invalidJSON(let part, let reason): "The \(part.rawValue) is not strict JSON: \(reason)."
        case .notAnObject(let part): "The \(part.rawValue) is not a JSON object."
        }
    }
}

extension Refusal.ForeignToken {
    fileprivate var detail: String {
        switch self {
        case .accessToken:
            "This is an access token, not an id token. In Limited Login send AuthenticationToken.current.tokenString: the "
                + "access token that an app also gets since SDK 17 is of no use there. One of Android, the web or "
                + "classic login goes into access_token."
        case .encrypted: "This is an encrypted token (JWE); Facebook's id tokens are signed only."
        case .encryptionHeader:
            "The header speaks of encryption (enc, zip, p2c or p2s); Facebook's id tokens are signed only."
        case .nested: "This is a token within a token (cty); Facebook's id tokens are not nested."
        case .type(let name?): "The header's typ is \(name), so this is another kind of token; an id token's is JWT."
        case .type(nil): "The header's typ is not JWT, so this is another kind of token."
        }
    }
}

extension Refusal.ClaimFault {
    fileprivate var clause: String {
        switch self {
        case .wrongType: "has the wrong JSON type"
        case .empty: "is empty"
        case .outOfRange: "is out of range: a time is a number of seconds from 0 to 2^53"
        case .outOfShape: "is too long or not ASCII"
        }
    }
}
