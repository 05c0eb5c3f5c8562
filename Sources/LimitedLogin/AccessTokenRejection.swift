/// The reason why an access token was refused or cannot be judged. No part of the token is in it.
public struct AccessTokenRejection: Error, Equatable, Sendable, CustomStringConvertible {
    /// The stable codes of a refusal. Later versions may know more of them.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code as it is written in logs.
        public let rawValue: String

        fileprivate init(_ rawValue: String) { self.rawValue = rawValue }

        /// Graph does not confirm the token, or it is not a person's token.
        public static let invalid = Self("access_token_invalid")
        /// The token expired.
        public static let expired = Self("access_token_expired")
        /// The person or Facebook revoked the token.
        public static let revoked = Self("access_token_revoked")
        /// The token is older than is allowed, or its age is not known.
        public static let tooOld = Self(TokenRejection.Code.tooOld.rawValue)
        /// The token is for another app.
        public static let invalidAudience = Self(TokenRejection.Code.invalidAudience.rawValue)
        /// The token belongs to another person.
        public static let subjectMismatch = Self(TokenRejection.Code.subjectMismatch.rawValue)
        /// The token belongs to another login.
        public static let nonceMismatch = Self(TokenRejection.Code.nonceMismatch.rawValue)
        /// The login's nonce was not issued here for this app.
        public static let nonceNotIssued = Self(TokenRejection.Code.nonceNotIssued.rawValue)
        /// The login's nonce was issued too long ago.
        public static let nonceExpired = Self(TokenRejection.Code.nonceExpired.rawValue)
        /// No refusal: Graph's answer cannot be read.
        public static let unreadableAnswer = Self("unreadable_answer")
        /// The same as `rawValue`.
        public var description: String { rawValue }
    }

    /// The stable code.
    public let code: Code
    /// One sentence that a person can act on.
    public let description: String
    /// The remedy, in one sentence; nil if the code says it all.
    package let hint: String?

    /// Graph's answer cannot be read: this is not the token's fault and no reason to log a person out.
    public static let unreadableAnswer = Self(
        .unreadableAnswer,
        "Graph's answer about the access token cannot be read."
    )

    package static let invalid = Self(
        .invalid,
        "Graph says that the access token is not valid. Where tracking is denied, SDK 17 and later give the app a "
            + "placeholder: send AuthenticationToken.current.tokenString as id_token instead.",
        "An iPhone app with SDK 17 or later gets this placeholder where tracking is denied: have it send "
            + "AuthenticationToken.current.tokenString as id_token; otherwise copy the token anew, whole."
    )
    package static let gaming = Self(
        .invalid,
        "The access token begins with GG|: it is of the gaming domain, which Graph cannot vouch for. Have the app log in with "
            + "Facebook Login, or send the login's id token as id_token.",
        "Have the app log in with Facebook Login instead of the gaming domain, or send "
            + "AuthenticationToken.current.tokenString as id_token."
    )
    package static let otherType = Self(
        .invalid,
        "The access token is an app's or a page's, not a person's.",
        "Send the token that the login gave the app, not one that a server made for itself."
    )
    package static let noUser = Self(
        .invalid,
        "Graph names no person whose access token it is.",
        lookAtTheDebugger
    )
    package static let noExpiry = Self(
        .invalid,
        "Graph does not say until when the access token is valid.",
        lookAtTheDebugger
    )
    package static let otherPerson = Self(
        .invalid,
        "Graph names another person for the access token than its holder.",
        "Refuse the login and have the person log in again; Graph contradicts itself."
    )
    package static let expired = Self(
        .expired,
        "The access token expired: have the app log in again."
    )
    package static let revoked = Self(
        .revoked,
        "The access token was revoked, by the person or by Facebook: have the app log in again.",
        "The person removed the app or changed the password, or Facebook ended the session: end yours, and have the person log "
            + "in again."
    )
    package static let tooOld = Self(
        .tooOld,
        "The access token is older than max_token_age_seconds allows: have the app log in again.",
        logInOrAllow
    )
    package static let unknownAge = Self(
        .tooOld,
        "Graph does not tell when the access token was issued, so it may be older than max_token_age_seconds allows: send an "
            + "id token, or an access token that lives long.",
        logInOrAllow
    )
    package static let otherApp = Self(
        .invalidAudience,
        "The access token was issued for another app.",
        "Look whether LIMITED_LOGIN_APP_IDS is right, and facebook_app_id in the app's strings.xml, FacebookAppID in its "
            + "Info.plist, appId in FB.init."
    )
    package static let subjectMismatch = Self(
        .subjectMismatch,
        "The access token belongs to another person than the subject given.",
        Refusal.subjectMismatch.hint
    )

    private static let lookAtTheDebugger =
        "Look at the token in Facebook's Access Token Debugger, since Graph answers so for no login of a person."
    private static let logInOrAllow =
        "Have the app log in again, or set LIMITED_LOGIN_MAX_TOKEN_AGE_SECONDS higher: an app keeps its access token for up "
        + "to 60 days."

    private init(_ code: Code, _ description: String, _ hint: String? = nil) {
        self.code = code
        self.description = description
        self.hint = hint
    }

    init(_ fault: NonceFault) { self.init(Code(fault.code.rawValue), fault.sentence("The access token's login")) }

    /// The reason why Graph no longer accepts a token, from the subcode of its error 190.
    package init(subcode: Int64?) {
        switch subcode {
        case 463: self = .expired
        // The person removed the app or changed the password, or the session was ended, also by a checkpoint.
        case 458, 460, 466, 467: self = .revoked
        default: self = .invalid
        }
    }
}
