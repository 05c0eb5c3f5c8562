internal import LLHTTP1
internal import LLHTTPServer
internal import LLJOSE
internal import LLStores
internal import LimitedLogin

/// The body of a `POST /verify` about the player of an Instant Game.
struct SignedPlayerInfoRequest {
    static let members = ["signed_player_info", "app_id", "nonce", "issued_nonce"]

    private(set) var text: [UInt8] = []
    /// The app that must have signed, with its secret; nil for any configured app.
    private(set) var appID: String?
    /// The nonce that the game gave Facebook; nil if it is an issued one or there is none.
    private(set) var nonce: Nonce?
    private(set) var isIssued = false

    /// - Parameter document: The parsed body, an object.
    init(_ document: borrowing JSONDocument, _ body: Span<UInt8>) throws(Problem) {
        for name in document.children(of: document.root) {
            let value = name + 1
            switch document.string(name, in: body) {
            case "signed_player_info": try document.appendText("signed_player_info", value, in: body, to: &text)
            case "app_id":
                try document.requireString("app_id", value)
                appID = document.string(value, in: body)
            case "nonce": nonce = try document.nonce(value, in: body)
            case "issued_nonce":
                try document.requireTrue("issued_nonce", value)
                isIssued = true
            default: throw RequestMistake.unknownMember(document.string(name, in: body), known: Self.members)
            }
        }
        guard nonce == nil || !isIssued else {
            throw Problem(.invalidRequest, "Only one of nonce and issued_nonce may be given.")
        }
    }
}

/// The signed player info of an Instant Game at `POST /verify`. The app's secret verifies it at once, without a call to
/// another server.
enum SignedPlayerInfoEndpoint {
    static func answer(
        _ worker: WorkerContext,
        _ request: SignedPlayerInfoRequest,
        _ exchange: inout HTTPExchange
    ) -> Outcome {
        do throws(Problem) {
            return try judge(worker, request, &exchange)
        } catch {
            return .refused(.signedPlayerInfo, error)
        }
    }

    private static func judge(
        _ worker: WorkerContext,
        _ request: SignedPlayerInfoRequest,
        _ exchange: inout HTTPExchange
    ) throws(Problem) -> Outcome {
        let settings = worker.settings
        let policy = settings.verifier.policy
        guard let secrets = settings.appSecrets else {
            throw Problem(
                .invalidRequest,
                "Signed player info is verified with the app's secret, and there is none: set app_secrets_file "
                    + "(LIMITED_LOGIN_APP_SECRETS_FILE)."
            )
        }
        var signers = secrets.signers
        if let appID = request.appID {
            signers = signers.filter { $0.appID.utf8.elementsEqual(appID.utf8) }
            guard !signers.isEmpty else {
                throw Problem(
                    .unknownApp,
                    "The app_id is not a configured app's, or app_secrets_file has no secret of it."
                )
            }
        }
        var expectation: NonceExpectation?
        if request.nonce != nil || request.isIssued {
            expectation = try NonceExpectation(request.nonce, settings.verifier.nonces)
        } else if policy.binding == .required {
            throw Problem(
                .invalidRequest,
                "Give nonce or issued_nonce: without one a copy of the signed player info from anywhere would do."
            )
        }
        let (now, info) = (try ServiceClock.now(), request.text.span)
        let player: SignedPlayerInfo
        do throws(SignedPlayerInfoRejection) {
            player = try SignedPlayerInfo(
                verifying: info,
                secrets: signers,
                expecting: expectation,
                clockSkewSeconds: policy.clockSkewSeconds,
                now: now
            )
        } catch {
            throw Problem(error)
        }
        try requireNotRevoked(player, worker)
        let write: ReplayGuard.Writer = { response in
            VerifyEndpoint.addFields(to: &response)
            SignedPlayerInfoAnswer.write(player, to: &response.body)
        }
        let person = (player.appScopedID ?? player.playerID).flatMap { worker.auditName(player.appID, $0) }
        guard settings.rejectsReplays || player.issuedNonce != nil else {
            write(&exchange.response)
            return .accepted(.signedPlayerInfo, person: person)
        }
        let question = ReplayLookup(player, request.text, usesInfo: settings.rejectsReplays)
        return try ReplayGuard.consume(
            question,
            of: .signedPlayerInfo,
            person,
            worker,
            &exchange,
            write: write
        )
    }

    /// A revocation names a user id of Facebook Login, and a `player_id` is not one.
    private static func requireNotRevoked(_ player: SignedPlayerInfo, _ worker: WorkerContext) throws(Problem) {
        guard let person = player.appScopedID else { return }
        guard worker.revocations.isKnown else { throw TokenJudge.unknownRevocations }
        let app = player.appID.utf8.span
        try worker.revocations.requireInForce(app: app, user: person.utf8.span, issuedAt: player.issuedAt)
    }
}

extension Problem {
    init(_ rejection: SignedPlayerInfoRejection) {
        let code = ProblemCode.ofTokens.first { $0.text == rejection.code.rawValue }
        let other: ProblemCode = rejection == .cannotVerify ? .internalError : .invalidSignedPlayerInfo
        self.init(code ?? other, rejection.description)
    }
}

extension ReplayLookup {
    /// The entries that signed player info uses up: its nonce if it is an issued one, and itself if the policy says so.
    /// Nil if OpenSSL fails.
    init?(_ player: SignedPlayerInfo, _ text: [UInt8], usesInfo: Bool) {
        var entries: [ReplayEntry] = []
        if let nonce = player.issuedNonce {
            guard let entry = ReplayEntry(nonce, app: player.appID.utf8.span) else { return nil }
            entries.append(entry)
        }
        if usesInfo {
            // The hash covers the signed part alone: the signature before it has more than one spelling. In range: a
            // time is at most 2⁵³ seconds.
            let message = text.drop { $0 != UInt8(ascii: ".") }
            let issuedAt = UInt64(player.issuedAt.secondsSince1970 * 1_000)
            let life = UInt64(SignedPlayerInfo.greatestAgeSeconds) * 1_000 + 1
            let entry = ReplayEntry(
                .token,
                scope: Array(player.appID.utf8).span,
                Array(message).span,
                bornAt: issuedAt,
                expiresAt: issuedAt + life
            )
            guard let entry else { return nil }
            entries.append(entry)
        }
        self.init(entries)
    }
}

/// Writes the answer to accepted signed player info.
enum SignedPlayerInfoAnswer {
    static func write(_ player: SignedPlayerInfo, to body: inout [UInt8]) {
        JSONWriter.raw("{\"player\":{", to: &body)
        JSONWriter.member("app_id", player.appID, to: &body)
        JSONWriter.member("player_id", player.playerID, to: &body)
        JSONWriter.member("asid", player.appScopedID, to: &body)
        JSONWriter.member("issued_at", Int(clamping: player.issuedAt.wholeSeconds), to: &body)
        JSONWriter.member("nonce", player.nonce, to: &body)
        JSONWriter.raw("}}", to: &body)
    }
}
