internal import Graph
internal import LimitedLogin
internal import Sockets
internal import VerificationService

/// Judges access tokens as the service would.
enum AccessTokenReport {
    /// The checks in their order; Graph is asked from `known` on.
    enum Check: String, CaseIterable {
        case allowed, shape, known
        case notRevoked = "not_revoked"
        case type, app, user, expiry, subject, person

        var title: String {
            switch self {
            case .allowed: "Access tokens are accepted (access_tokens)"
            case .shape: "The token has the shape of an access token"
            case .known: "Graph reads the token (debug_token)"
            case .notRevoked: "Neither the person nor Facebook revoked it"
            case .type: "It is a person's, not an app's or a page's"
            case .app: "It was issued for a configured app"
            case .user: "Graph names its person"
            case .expiry: "It has not expired"
            case .subject: "It belongs to the person of this session"
            case .person: "Graph names the same person to its holder (/me)"
            }
        }
    }

    /// A refused token: where, why, and what to do about it.
    struct Refusal: Error {
        let check: Check
        let code: String
        let detail: String
        let cure: String
    }

    /// Judges a token as the service would; Graph is asked.
    /// - Parameters:
    ///   - apps: what Graph is asked with, in place of what the configuration's file says.
    /// - Throws: ``Exit``, after a line on standard error, where Graph cannot tell.
    static func make(
        token: [UInt8],
        subject: String?,
        configuration: ServiceConfiguration,
        now moment: NumericDate,
        apps: [AppSecret]? = nil
    ) throws -> CheckReport {
        func report(_ refusal: Refusal?, _ answer: [UInt8] = []) -> CheckReport {
            CheckReport(
                failed: refusal?.check,
                refusal: refusal.map { CheckReport.Refusal(code: $0.code, detail: $0.detail, cure: $0.cure) },
                answer: answer,
                moment: moment
            ) { (check: Check) in
                (check.rawValue, check.title, check != .subject || subject != nil)
            }
        }
        guard configuration.accessTokensAreAccepted else { return report(.notAllowed) }
        guard AccessTokenInspection.shape(token.span) == .accessToken else { return report(.malformed) }
        guard let secrets = try apps ?? ServiceParts.settings(configuration).accessTokenApps else {
            return report(.notAllowed)
        }
        let client = try ServiceParts.graphClient(configuration)
        let question = AccessTokenQuestion(token: GraphAccessToken(token), apps: secrets, subject: subject)
        let deadline = MonotonicClock.now() + client.limits.callTimeout
        do throws(AccessTokenQuestion.Failure) {
            let verified = try question.ask(client, until: deadline) { moment }
            var answer: [UInt8] = []
            AccessTokenAnswer.write(verified, asked: nil, to: &answer)
            return report(nil, answer)
        } catch {
            switch error {
            case .rejected(let rejection): return report(Refusal(rejection, configuration))
            case .graph(let failure):
                failure.ofAccessToken.write()
                throw Exit.graphUnavailable
            }
        }
    }
}

extension AccessTokenReport.Refusal {
    /// The setting is off.
    static let notAllowed = Self(
        check: .allowed,
        code: ProblemCode.accessTokenNotAllowed.text,
        detail: "This service does not accept access tokens.",
        cure:
            "Have an iPhone app send AuthenticationToken.current.tokenString; for logins of Android, the web or classic "
            + "iOS set LIMITED_LOGIN_ACCESS_TOKENS to accept, and LIMITED_LOGIN_APP_SECRETS_FILE."
    )
    /// The text is no access token.
    static let malformed = Self(
        check: .shape,
        code: ProblemCode.accessTokenInvalid.text,
        detail: "An access token has 20 to 4,096 visible ASCII characters, and is no JWT.",
        cure: "Copy AccessToken.current.token (Android), AccessToken.current.tokenString (iOS) or "
            + "authResponse.accessToken (web), whole and without quotation marks; what begins with eyJ is an id token."
    )

    init(_ rejection: AccessTokenRejection, _ configuration: ServiceConfiguration) {
        code = rejection.code ?? ""
        detail = rejection.description
        switch rejection {
        case .expired:
            (check, cure) = (.expiry, "Have the app log in again; the SDK renews a token that the app uses once a day.")
        case .revoked:
            (check, cure) = (
                .notRevoked,
                "The person removed the app or changed the password, or Facebook ended the session: end yours, and have the "
                    + "person log in again."
            )
        case .otherType:
            (check, cure) = (
                .type, "Send the token that the login gave the app, not one that a server made for itself."
            )
        case .otherApp:
            (check, cure) = (
                .app,
                "You configured \(configuration.appIDs.prefix(5).joined(separator: ", ")): is LIMITED_LOGIN_APP_IDS right, and "
                    + "facebook_app_id in the app's strings.xml, FacebookAppID in its Info.plist, appId in FB.init?"
            )
        case .noUser, .noExpiry:
            (check, cure) = (
                rejection == .noUser ? .user : .expiry,
                "Graph answers so for no login of a person: look at the token in the Access Token Debugger of Facebook."
            )
        case .subjectMismatch:
            (check, cure) = (
                .subject,
                "The token is another person's than --subject says: end that session and begin one with a new login."
            )
        case .otherPerson:
            (check, cure) = (.person, "Refuse the login and have the person log in again; Graph contradicts itself.")
        default:
            (check, cure) = (
                .known,
                "An iPhone app with SDK 17 or later gets this placeholder where tracking is denied: have it send "
                    + "AuthenticationToken.current.tokenString as id_token; otherwise copy the token anew, whole."
            )
        }
    }
}

extension GraphFailure {
    /// Says on standard error what failed and what to do, with what Facebook's support asks for.
    func write() {
        let numbers = [code.map { "code \($0)" }, subcode.map { "subcode \($0)" }, reason]
        let facts = (numbers + [traceID.map { "fbtrace_id \($0)" }]).compactMap { $0 }
        let tail = facts.isEmpty ? "" : " (\(facts.joined(separator: ", ")))"
        StandardError.write("limited-login: \(error.rawValue): \(sentence)\(tail)")
    }
}
