extension Rejection {
    package static let accessTokenNotConfirmed = invalid(
        "Graph says that the access token is not valid. Where tracking is denied, SDK 17 and later give the app a "
            + "placeholder: send AuthenticationToken.current.tokenString as id_token instead.",
        "An iPhone app with SDK 17 or later gets this placeholder where tracking is denied: have it send "
            + "AuthenticationToken.current.tokenString as id_token; otherwise copy the token anew, whole."
    )
    private static func invalid(_ detail: String, _ hint: String) -> Rejection {
        Rejection(.accessTokenInvalid, detail, hint: hint)
    }
    package static let accessTokenOfCheckpoint = invalid(
        "Facebook holds the person's account at a check, so the access token is not valid now.",
        "Have the person log in at www.facebook.com, pass the check there, and log in to the app again; end no account."
    )
    package static let accessTokenOfUnconfirmedAccount = invalid(
        "The person's account at Facebook is not confirmed, so the access token is not valid now.",
        "Have the person confirm the account at www.facebook.com, and log in to the app again; end no account."
    )
    package static let accessTokenWithoutRole = invalid(
        "The person has no role in the app, which is in development, or on the page that the access token is for.",
        "Give the person a role in the App Dashboard, or switch the app to live mode."
    )
    package static let accessTokenOfGaming = invalid(
        "The access token begins with GG|: it is of the gaming domain, which Graph cannot vouch for. Have the app log in with "
            + "Facebook Login, or send the login's id token as id_token.",
        "Have the app log in with Facebook Login instead of the gaming domain, or send "
            + "AuthenticationToken.current.tokenString as id_token."
    )
    package static let accessTokenOfNoPerson = invalid(
        "The access token is an app's or a page's, not a person's.",
        "Send the token that the login gave the app, not one that a server made for itself."
    )
    package static let accessTokenWithoutUser = invalid(
        "Graph names no person whose access token it is.",
        lookAtTheDebugger
    )
    package static let accessTokenWithoutExpiry = invalid(
        "Graph does not say until when the access token is valid.",
        lookAtTheDebugger
    )
    package static let accessTokenOfAnother = invalid(
        "Graph names another person for the access token than its holder.",
        "Refuse the login and have the person log in again; Graph contradicts itself."
    )
    package static let accessTokenExpired = Rejection(.accessTokenExpired)
    package static let accessTokenRevoked = Rejection(
        .accessTokenRevoked,
        "The access token was revoked, by the person or by Facebook: have the app log in again.",
        hint:
            "The person removed the app or changed the password, or Facebook ended the session: end yours, and have the person log "
            + "in again."
    )
    package static let accessTokenTooOld = Rejection(
        .tooOld,
        "The access token is older than the greatest age allows: have the app log in again.",
        hint: logInOrAllow
    )
    package static let accessTokenOfUnknownAge = Rejection(
        .tooOld,
        "Graph does not tell when the access token was issued, so it may be older than the greatest age allows: send an "
            + "id token, or an access token that lives long.",
        hint: logInOrAllow
    )
    package static let accessTokenOfOtherApp = Rejection(
        .invalidAudience,
        "The access token was issued for another app.",
        hint:
            "Look whether `appIDs` is right, and facebook_app_id in the app's strings.xml, FacebookAppID in its "
            + "Info.plist, appId in FB.init."
    )
    package static let accessTokenOfOtherSubject = Rejection(
        .subjectMismatch,
        "The access token belongs to another person than the subject given."
    )

    private static let lookAtTheDebugger =
        "Look at the token in Facebook's Access Token Debugger, since Graph answers so for no login of a person."
    private static let logInOrAllow =
        "Have the app log in again, or set `maximumTokenAge` higher: an app keeps its access token for up "
        + "to 60 days."

    static let accessTokenNonceMismatch = Rejection(
        .nonceMismatch,
        "The access token's login has no nonce, or another than the one expected: begin the login anew."
    )
    static let accessTokenNonceNotIssued = Rejection(
        .nonceNotIssued,
        "The access token's login has a nonce that was not issued here for this app: begin the login anew."
    )
    static let accessTokenNonceExpired = Rejection(
        .nonceExpired,
        "The access token's login has a nonce whose time is over: begin the login anew, with a new nonce."
    )

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
