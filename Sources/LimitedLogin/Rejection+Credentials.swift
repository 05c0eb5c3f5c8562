internal import LLBytes

/// The refusals of access tokens. Graph judges them, so none of an id token's checks does.
extension Rejection {
    private static let lookAtTheDebugger =
        "Look at the token in Facebook's Access Token Debugger, since Graph answers so for no login of a person."
    private static let logInOrAllow =
        "Have the app log in again, or set `maximumTokenAge` higher: an app keeps its access token for up to 60 days."

    package static let accessTokenExpired = Rejection(.accessTokenExpired)
    package static let accessTokenRevoked = Rejection(.accessTokenRevoked)
    package static let accessTokenNotConfirmed = Rejection(.accessTokenInvalid)
        .detail(
            "Graph says that the access token is not valid. Where tracking is denied, SDK 17 and later give the app a "
                + "placeholder: send AuthenticationToken.current.tokenString as id_token instead."
        )
        .hint(
            "An iPhone app with SDK 17 or later gets this placeholder where tracking is denied: have it send "
                + "AuthenticationToken.current.tokenString as id_token; otherwise copy the token anew, whole."
        )
    package static let accessTokenOfCheckpoint = Rejection(.accessTokenInvalid)
        .detail("Facebook holds the person's account at a check, so the access token is not valid now.")
        .hint(
            "Have the person log in at www.facebook.com, pass the check there, and log in to the app again; end no account."
        )
    package static let accessTokenOfUnconfirmedAccount = Rejection(.accessTokenInvalid)
        .detail("The person's account at Facebook is not confirmed, so the access token is not valid now.")
        .hint("Have the person confirm the account at www.facebook.com, and log in to the app again; end no account.")
    package static let accessTokenWithoutRole = Rejection(.accessTokenInvalid)
        .detail(
            "The person has no role in the app, which is in development, or on the page that the access token is for."
        )
        .hint("Give the person a role in the App Dashboard, or switch the app to live mode.")
    package static let accessTokenOfGaming = Rejection(.accessTokenInvalid)
        .detail(
            "The access token begins with GG|: it is of the gaming domain, which Graph cannot vouch for. Have the app log in "
                + "with Facebook Login, or send the login's id token as id_token."
        )
        .hint(
            "Have the app log in with Facebook Login instead of the gaming domain, or send "
                + "AuthenticationToken.current.tokenString as id_token."
        )
    package static let accessTokenOfNoPerson = Rejection(.accessTokenInvalid)
        .detail("The access token is an app's or a page's, not a person's.")
        .hint("Send the token that the login gave the app, not one that a server made for itself.")
    package static let accessTokenWithoutUser = Rejection(.accessTokenInvalid, hint: lookAtTheDebugger)
        .detail("Graph names no person whose access token it is.")
    package static let accessTokenWithoutExpiry = Rejection(.accessTokenInvalid, hint: lookAtTheDebugger)
        .detail("Graph does not say until when the access token is valid.")
    package static let accessTokenOfAnother = Rejection(.accessTokenInvalid)
        .detail("Graph names another person for the access token than its holder.")
        .hint("Refuse the login and have the person log in again; Graph contradicts itself.")
    package static let accessTokenTooOld = Rejection(.tooOld, hint: logInOrAllow).at(nil)
        .detail("The access token is older than the greatest age allows: have the app log in again.")
    package static let accessTokenOfUnknownAge = Rejection(.tooOld, hint: logInOrAllow).at(nil)
        .detail(
            "Graph does not tell when the access token was issued, so it may be older than the greatest age allows: send an "
                + "id token, or an access token that lives long."
        )
    package static let accessTokenOfOtherApp = Rejection(.invalidAudience).at(nil)
        .detail("The access token was issued for another app.")
        .hint(
            "Look whether `appIDs` is right, and facebook_app_id in the app's strings.xml, FacebookAppID in its "
                + "Info.plist, appId in FB.init."
        )
    package static let accessTokenOfOtherSubject = Rejection(.subjectMismatch).at(nil)
        .detail("The access token belongs to another person than the subject given.")
    static let accessTokenNonceMismatch = Rejection(.nonceMismatch).at(nil)
        .detail("The access token's login has no nonce, or another than the one expected: begin the login anew.")
    static let accessTokenNonceNotIssued = Rejection(.nonceNotIssued).at(nil)
        .detail("The access token's login has a nonce that was not issued here for this app: begin the login anew.")
    static let accessTokenNonceExpired = Rejection(.nonceExpired).at(nil)
        .detail("The access token's login has a nonce whose time is over: begin the login anew, with a new nonce.")

    /// The reason why Graph no longer accepts a token, from the subcode of its error 190.
    package static func accessToken(subcode: Int64?) -> Rejection {
        switch subcode {
        case 463: .accessTokenExpired
        // The person removed the app or changed the password, or the session was ended, also by a checkpoint.
        case 458, 460, 466, 467: .accessTokenRevoked
        case 459, 490: .accessTokenOfCheckpoint
        case 464: .accessTokenOfUnconfirmedAccount
        case 492: .accessTokenWithoutRole
        default: .accessTokenNotConfirmed
        }
    }
}

/// The refusals of signed requests. No part of the request is in them.
extension Rejection {
    private static func request(_ detail: String) -> Rejection { Rejection(.invalidSignedRequest, detail) }

    package static let requestMalformed = request(
        "The signed request is not two parts of base64url with a JSON object."
    )
    package static let requestOfNoSecret = request("The signature was made with no configured app secret.")
    package static let requestOfOtherAlgorithm = request("The algorithm is not HMAC-SHA256.")
    package static let requestOfLogin = request(
        "This is a login's signed request (it has code, oauth_token or access_token), not a callback's."
    )
    package static let requestOfPageTab = request(
        "This is a page tab's signed request (it has page), not a callback's."
    )
    package static let requestOfInstantGame = request(
        "This is an Instant Game's signed request (it has player_id, asid or request_payload), not a callback's."
    )
    package static let requestOfInvalidUser = request(
        "The member user_id is missing or not 1 to 20 digits without a leading zero."
    )
    package static let requestOutOfTime = request(
        "The member issued_at is missing, more than a day ago, or in the future."
    )
    package static let requestExpired = request("The member expires is in the past, or no number of seconds.")
    /// `user_id` of a signed request is 0: a page removed the app. Answer 200 at the deauthorize callback and 403 at data
    /// deletion.
    public static let requestOfNoPerson = request(
        "The member user_id is 0: a page removed the app, and no person is named."
    )
    package static let requestNotVerifiable = Rejection(.internalError, "The signature cannot be verified now.")
}

/// The refusals of DPoP proofs. Those that quote values come after a good signature, and a proof's text is not secret.
extension Rejection {
    private static func proof(_ detail: String) -> Rejection { Rejection(.invalidDPoPProof, detail) }

    package static let proofMissing = proof("The token is bound to a key, and the request has no DPoP proof.")
    package static let proofRepeated = proof("The request has more than one DPoP field.")
    package static let proofTooLong = proof(
        "The DPoP proof is longer than \(DecimalNumber.grouped(DPoPProof.byteLimit)) bytes."
    )
    package static let proofMalformed = proof(
        "The DPoP proof is not a JWT: three parts of base64url, two of them JSON objects."
    )
    package static let proofOfWrongType = proof("The DPoP proof's typ is not dpop+jwt.")
    package static let proofOfUnsupportedAlgorithm = proof("The DPoP proof's alg is not ES256.")
    package static let proofWithCriticalHeader = proof("The DPoP proof demands an extension with crit or b64.")
    package static let proofOfInvalidKey = proof("The DPoP proof's jwk is not a public P-256 key.")
    package static let proofOfInvalidSignature = proof("The DPoP proof's signature is not the one of its jwk.")
    package static let proofWithoutURL = proof("The URL given for the request is no http or https URL.")
    package static let proofWithoutIssueTime = proof("The DPoP proof has no iat.")
    package static let proofWithoutTokenID = proof("The DPoP proof's jti is missing, empty, or longer than 256 bytes.")
    package static let proofOfUnboundToken = proof("The token is bound to no key, so no DPoP proof fits it.")
    package static let proofOfUnreadableBinding = proof(
        "The token's cnf has no readable thumbprint jkt, so no key can use the token."
    )
    package static let proofWithoutTokenHash = proof(
        "The DPoP proof has no ath: the base64url of the token's SHA-256, without padding."
    )
    package static let proofOfOtherToken = proof("The DPoP proof's ath is not the hash of the token.")
    package static let proofOfOtherKey = proof("The DPoP proof's key is not the one that the token is bound to.")
    package static let proofReplayed = proof(
        "The DPoP proof's jti was seen before: make a proof with a new jti for each request."
    )
    /// RFC 9449 section 7.2: accepted as a Bearer, a stolen bound token would be useful to a thief.
    package static let boundBearer = proof(
        "The token is bound to a key and came as a Bearer beside a DPoP field: send Authorization: DPoP with the token."
    )
    static let proofNotVerifiable = Rejection(.internalError, "The DPoP proof cannot be verified now.")

    private static let clockAdvice = "the device's clock is wrong: correct it by the Date of this answer"

    package static func proofIssuedAhead(_ moment: NumericDate, _ now: NumericDate) -> Rejection {
        proof("The DPoP proof's iat is \(distance(of: moment, now)): \(clockAdvice).")
    }
    package static func proofIssuedBehind(_ moment: NumericDate, _ now: NumericDate) -> Rejection {
        proof(
            "The DPoP proof's iat is \(distance(of: moment, now)), and at most \(DPoPProof.greatestAgeSeconds) s are "
                + "allowed. Make a proof for each request; if you do, \(clockAdvice)."
        )
    }
    package static func proofWithUnreadableTime(_ claim: StaticString) -> Rejection {
        proof("The DPoP proof's \(claim) is no number of seconds since 1970: write it in seconds and without quotes.")
    }
    package static func proofNotInSeconds(_ claim: StaticString, _ unit: StaticString) -> Rejection {
        proof(
            "The DPoP proof's \(claim) counts \(unit); it must be whole seconds since 1970, such as "
                + "Math.floor(Date.now() / 1000)."
        )
    }
    package static func proofOutOfTime(_ claim: StaticString, _ moment: NumericDate, _ now: NumericDate) -> Rejection {
        proof("The DPoP proof's \(claim) is \(distance(of: moment, now)).")
    }

    package static func proofOfWrongMethod(_ claimed: String?, _ method: Span<UInt8>) -> Rejection {
        guard let claimed else { return proof("The DPoP proof has no htm that is a string.") }
        var asked: [UInt8] = []
        asked.append(method)
        return different("htm", claimed, "method", String(decoding: asked, as: UTF8.self))
    }
    package static func proofOfWrongURI(_ claimed: String?, _ target: TargetURI) -> Rejection {
        guard let claimed else { return proof("The DPoP proof has no htu that is a string.") }
        guard let uri = TargetURI(claimed.utf8.span) else {
            return proof("The DPoP proof's htu is no http or https URL with a host and without a user.")
        }
        // Both are in the normalised spelling that is compared, which has no query.
        let values = [uri, target].map { String(decoding: $0.normalized, as: UTF8.self) }
        return different("htu", values[0], "URL", values[1])
    }

    /// Two values that should be equal. The sentence quotes them if both are visible and have at most 128 bytes: enough for
    /// most URLs of an API, and the sentence stays readable.
    private static func different(_ claim: String, _ claimed: String, _ name: String, _ value: String) -> Rejection {
        let areShown = [claimed, value].allSatisfy { text in
            (1...128).contains(text.utf8.count) && text.utf8.allSatisfy(ASCII.isVisible)
        }
        guard areShown else { return proof("The DPoP proof's \(claim) is not the request's \(name).") }
        return proof("The DPoP proof's \(claim) is \(claimed), and the request's \(name) is \(value).")
    }

    /// Whole seconds, rounded up, so that a time outside the limit is never reported as within it.
    private static func distance(of moment: NumericDate, _ now: NumericDate) -> String {
        let lead = moment.secondsSince1970 - now.secondsSince1970
        // In range: both are from 0 to 2⁵³.
        return "\(Int64(lead.magnitude.rounded(.up))) s \(lead > 0 ? "ahead" : "behind")"
    }
}
