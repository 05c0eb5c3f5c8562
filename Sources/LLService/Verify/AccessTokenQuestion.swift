package import LLHTTP
internal import LLJOSE
internal import LLStores
package import LimitedLogin

/// The body of a `POST /verify` that has an access token and no id token.
struct AccessTokenRequest {
    static let members = [
        "access_token", "app_id", "subject", "permissions", "auth_nonce", "nonce", "issued_nonce",
    ]

    private(set) var token: [UInt8] = []
    private(set) var subject: String?
    private(set) var appID: [UInt8]?
    private(set) var permissions: [String]?
    private(set) var hasAuthNonce = false
    private(set) var nonce: Nonce?
    private(set) var hasIssuedNonce = false
}

extension AccessTokenRequest {
    init(_ document: borrowing JSONDocument, _ body: Span<UInt8>) throws(Rejection) {
        self.init()
        for name in document.children(of: document.root) {
            let value = name + 1
            switch document.string(name, in: body) {
            case "access_token": token = try document.text("access_token", value, in: body)
            case "subject": subject = String(decoding: try document.text("subject", value, in: body), as: UTF8.self)
            case "app_id":
                try document.requireString("app_id", value)
                appID = Array(document.string(value, in: body).utf8)
            case "permissions": permissions = try document.graphPermissions(value, in: body)
            case "nonce": nonce = try document.nonce(value, in: body)
            case "issued_nonce":
                try document.requireTrue("issued_nonce", value)
                hasIssuedNonce = true
            case "auth_nonce":
                try document.requireTrue("auth_nonce", value)
                hasAuthNonce = true
            case "raw_nonce", "key_thumbprint":
                throw Rejection(
                    .invalidRequest,
                    "Facebook hashes no nonce of an access token and binds it to no device, so neither raw_nonce nor "
                        + "key_thumbprint can be given with one."
                )
            default: throw RequestMistake.unknownMember(document.string(name, in: body), known: Self.members)
            }
        }
        let hasNonce = nonce != nil || hasIssuedNonce
        guard hasAuthNonce || !hasNonce else {
            throw Rejection(
                .invalidRequest,
                "An access token carries no nonce. Give auth_nonce: true as well if the web dialog was opened with "
                    + "auth_type=reauthenticate and this auth_nonce; else send the login's id token, or leave the nonce out."
            )
        }
        guard !hasAuthNonce || hasNonce else {
            throw Rejection(.invalidRequest, "Beside auth_nonce give nonce, issued_nonce or both.")
        }
    }

    /// The question to Graph. Throws if the settings or the token's form do not allow it.
    func question(
        _ apps: [AppSecret]?,
        _ policy: VerificationPolicy,
        _ nonces: NonceIssuer?
    ) throws(Rejection) -> AccessTokenQuestion {
        guard AccessTokenInspection.shape(token.span) != .jwt else {
            throw Rejection(.invalidRequest, "The member access_token holds a JWT: send it as id_token.")
        }
        var question = try AccessTokenQuestion(checking: token, apps: apps, subject: subject, policy: policy)
        if let appID {
            question.apps = question.apps.filter { $0.appID.utf8.elementsEqual(appID) }
            guard !question.apps.isEmpty else { throw Rejection(.unknownApp, "The app_id is not a configured app's.") }
        }
        if hasAuthNonce {
            guard !hasIssuedNonce || nonces != nil else { throw .noNonceIssuer }
            // With a user the token prolongs a session: its nonce was used up when that began.
            let isRefresh = nonce != nil && subject != nil
            question.nonce = NonceExpectation(nonce, nonces, mustBeIssued: hasIssuedNonce, isRefresh: isRefresh)
        }
        return question
    }
}

extension JSONDocument {
    func graphPermissions(_ list: Int, in body: Span<UInt8>) throws(Rejection) -> [String] {
        var names: [String] = []
        try forEachPermission(list) { element throws(Rejection) in
            let name = string(element, in: body)
            guard PermissionName.isValid(name) else {
                throw Rejection(.invalidPermission, "A permission's name is 1 to 64 of [a-z_.].")
            }
            if !names.contains(name) { names.append(name) }
        }
        return names
    }
}

extension ReplayLookup {
    /// The time for which a token without an expiry is remembered, in seconds: ten years, the greatest lifetime in the
    /// Redis store.
    private static let longestSeconds: Double = 315_360_000
    /// The precision of an entry's expiry: one hour, because tokens live for months.
    private static let stepMilliseconds: UInt64 = 3_600_000

    /// The entries that an access token uses up: the nonce of its login if it is an issued one, then the token itself
    /// if the policy says so, by its SHA-256 within its app. Nil if OpenSSL fails.
    init?(_ token: [UInt8], _ verified: VerifiedAccessToken, usesToken: Bool, now: NumericDate) {
        let inspection = verified.inspection
        var entries: [ReplayEntry] = []
        if let nonce = verified.nonce?.issued {
            guard let entry = ReplayEntry(nonce, app: inspection.appID.utf8.span) else { return nil }
            entries.append(entry)
        }
        if usesToken {
            let end = min(
                inspection.expiresAt?.secondsSince1970 ?? .infinity,
                now.secondsSince1970 + Self.longestSeconds
            )
            let born = inspection.earliestIssue(now: now)
            guard let entry = Self.entry(token, app: inspection.appID, issuedAt: born, until: end) else { return nil }
            entries.append(entry)
        }
        self.init(entries)
    }

    /// The time for which an access token sent with an id token is remembered, in seconds. Graph is not asked about it,
    /// so its expiry is unknown. 90 days is longer than the 60 days of the tokens for Facebook's SDKs.
    private static let besideSeconds: Double = 7_776_000

    /// The entry of an access token sent with an id token. `at_hash` proves that both were issued at the same time.
    static func entry(ofAccessToken token: [UInt8], app: String, issuedAt: NumericDate) -> ReplayEntry? {
        entry(token, app: app, issuedAt: issuedAt, until: issuedAt.secondsSince1970 + besideSeconds)
    }

    private static func entry(_ token: [UInt8], app: String, issuedAt: NumericDate, until end: Double) -> ReplayEntry? {
        let step = stepMilliseconds
        return ReplayEntry(
            .token,
            scope: Array(app.utf8).span,
            token.span,
            issuedAt: UInt64(issuedAt.secondsSince1970 * 1_000),
            expiresAt: (UInt64(end * 1_000) / step + 1) * step
        )
    }
}

/// The questions to Graph about one access token, and the verdict on its answers. The first question is about the
/// token; the second, about the person, is asked only if the token is for one of the apps
/// (developers.facebook.com/docs/graph-api/reference/v26.0/debug_token).
package struct AccessTokenQuestion: Sendable {
    package let token: GraphAccessToken
    /// The apps that the token may be for, with their secrets. They are tried one after another.
    package fileprivate(set) var apps: [AppSecret]
    package let subject: String?
    var nonce: NonceExpectation?

    private let policy: VerificationPolicy

    /// The question about a text that may be no access token.
    /// - Parameter apps: Nil if access tokens are not accepted.
    /// - Throws: A refusal if the settings or the token's form do not allow the question.
    package init(
        checking token: [UInt8],
        apps: [AppSecret]?,
        subject: String?,
        policy: VerificationPolicy
    ) throws(Rejection) {
        guard let apps else {
            throw Rejection(
                .accessTokenNotAllowed,
                "Access tokens are not accepted here; send an id token, or see LIMITED_LOGIN_ACCESS_TOKENS."
            )
        }
        let shape = AccessTokenInspection.shape(token.span)
        guard shape != .gaming else { throw .accessTokenOfGaming }
        guard shape == .accessToken else {
            throw Rejection(
                .accessTokenInvalid,
                "An access token has 20 to 4,096 visible ASCII characters, and nothing around it.",
                hint: PastedToken.remedy(for: token.span)
            )
        }
        (self.token, self.apps, self.subject, self.policy) = (GraphAccessToken(token), apps, subject, policy)
    }

    /// Asks Graph. It blocks the thread until there is a verdict or the time is over.
    /// - Parameter now: Returns the time for the verdict; called after Graph has answered. It returns nil if the
    ///   machine has no valid time.
    package func ask(
        _ client: GraphClient,
        metrics: ServiceMetrics? = nil,
        until deadline: MonotonicInstant,
        now: () -> NumericDate?
    ) throws(Rejection) -> VerifiedAccessToken {
        let answer = try inspection(client, metrics, until: deadline)
        guard let moment = now() else { throw Self.noTime }
        let inspection = try judged {
            try AccessTokenInspection(
                debugToken: answer,
                appIDs: apps.map(\.appID),
                subject: subject,
                maximumTokenAge: policy.maximumTokenAge,
                clockSkew: policy.clockSkew,
                now: moment
            )
        }
        let person = try me(inspection, client, metrics, until: deadline)
        var verified = try judged {
            try VerifiedAccessToken(me: person, of: inspection)
        }
        guard let nonce else { return verified }
        let info = try ofTokenItself { () throws(GraphFailure) in
            try ServiceMetrics.counting(.accessTokenInfo, in: metrics) { () throws(GraphFailure) in
                try client.loginInfo(of: token, appID: inspection.appID, until: deadline)
            }
        }
        guard let moment = now() else { throw Self.noTime }
        verified.nonce = try judged {
            try AccessTokenNonce(accessTokenInfo: info, of: verified, expecting: nonce, now: moment)
        }
        return verified
    }

    private static var noTime: Rejection {
        Rejection(GraphFailure(.other, reason: "no time to judge as of").ofAccessToken)
    }

    private func judged<Verdict>(_ judge: () throws -> Verdict) throws(Rejection) -> Verdict {
        do throws(Rejection) {
            return try Rejection.judging(judge)
        } catch {
            // An unreadable answer is not the token's fault.
            throw error.code.kind == .outage ? Rejection(GraphFailure(.unreadableAnswer).ofAccessToken) : error
        }
    }

    /// Graph's answer to the first app that it accepts. Graph answers the token's own app alone. If one app cannot ask
    /// now, the question stays open, unless another app gets the answer.
    private func inspection(
        _ client: GraphClient,
        _ metrics: ServiceMetrics?,
        until deadline: MonotonicInstant
    ) throws(Rejection) -> [UInt8] {
        var setback: GraphFailure?
        var answered = 0
        for app in apps {
            do throws(GraphFailure) {
                let answer = try ServiceMetrics.counting(.debugToken, in: metrics) { () throws(GraphFailure) in
                    try client.inspection(of: token, app: app, until: deadline)
                }
                if let answer { return answer }
                answered += 1
            } catch {
                setback = setback ?? error
                guard MonotonicClock.now() < deadline else { break }
            }
        }
        if var setback = setback?.ofAccessToken {
            // With many apps the deadline would end every try.
            if setback.error == .timedOut, answered > 0 {
                setback.advice =
                    "In the time for one token \(answered) of the \(apps.count) apps got an answer, and the token is none of "
                    + "theirs: send its app_id with it."
            }
            throw Rejection(setback)
        }
        throw .accessTokenOfOtherApp
    }

    private func me(
        _ inspection: AccessTokenInspection,
        _ client: GraphClient,
        _ metrics: ServiceMetrics?,
        until deadline: MonotonicInstant
    ) throws(Rejection) -> [UInt8] {
        guard let app = apps.first(where: { $0.appID == inspection.appID }) else { throw .accessTokenOfOtherApp }
        return try ofTokenItself { () throws(GraphFailure) in
            try ServiceMetrics.counting(.me, in: metrics) { () throws(GraphFailure) in
                try client.me(VerifiedAccessToken.fields(for: inspection), with: token, app: app, until: deadline)
            }
        }
    }

    /// Asks with the person's token: error 190 is then about that token.
    private func ofTokenItself(_ ask: () throws(GraphFailure) -> [UInt8]) throws(Rejection) -> [UInt8] {
        do throws(GraphFailure) {
            return try ask()
        } catch {
            guard error.code == 190 else { throw Rejection(error.ofAccessToken) }
            throw .accessToken(subcode: error.subcode)
        }
    }
}

extension GraphFailure {
    /// The failure of a question about an access token. Other routes answer some of these as the person's or the app's
    /// fault (403, 404, 409). Here they say nothing about the token, and a caller would mistake them for a refusal.
    package var ofAccessToken: GraphFailure {
        var failure = self
        // This question revokes nothing.
        failure.mayBeDone = false
        switch error {
        case .timedOut: failure.advice = "Graph did not answer in time; try again."
        case .permissionNotGranted, .permissionDenied, .capabilityMissing, .policyBlocked:
            failure.advice = "Facebook refuses the app itself, not the person: look for alerts in the App Dashboard."
        default: failure.advice = sentence
        }
        if !Rejection.Code.ofGraphAboutAccessTokens.contains(.graph(error)) { failure.error = .other }
        return failure
    }
}
