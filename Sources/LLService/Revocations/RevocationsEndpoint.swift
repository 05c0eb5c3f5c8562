internal import LLHTTP
internal import LLJOSE
internal import LLStores
internal import LimitedLogin

/// `POST /revocations`: refuses every token of a person and app that was issued until now ("log out everywhere"). The
/// body has `user_id`, and `app_id` if several apps are configured.
enum RevocationsEndpoint {
    static let bodyLimit = 1_024

    /// The revocation holds when this returns or the request is answered, independent of the answer.
    static let answer: Route.Answer = { worker, exchange, bytes throws(Rejection) in
        let members = try JSONDocument.texts(bytes.extracting(exchange.body), known: ["user_id", "app_id"])
        guard let text = members["user_id"] else { throw Rejection(.invalidRequest, "The member user_id is missing.") }
        guard let user = GraphUserID(text)?.text.utf8 else {
            throw Rejection(.invalidRequest, "The member user_id must be \(GraphUserID.shape).")
        }
        let app = try worker.settings.app(named: members["app_id"]).utf8
        return try worker.wait(
            &exchange,
            bytes,
            until: MonotonicClock.now() + ReplayGuard.patience,
            late: continuation(isRemembered: false),
            busy: unavailable
        ) { waiting in
            worker.core.revocations.revoke(app: app.span, user: user.span, at: WallClock.unixSeconds()) { answer in
                waiting.finish(continuation(isRemembered: answer == .remembered))
            }
            return true
        }
    }

    private static func continuation(isRemembered: Bool) -> Route.Answer {
        { _, exchange, _ throws(Rejection) in
            guard isRemembered else { throw unavailable }
            exchange.response.status = 204
            exchange.response.addField("Cache-Control: no-store")
            return .done
        }
    }

    /// The revocation may hold on this replica, but not on all of them.
    static var unavailable: Rejection {
        Rejection(
            .replayStoreUnavailable,
            "The revocation cannot be told to the other replicas now, or there is no room for it; send it again shortly."
        )
    }
}

extension Revocations {
    /// Refuses a credential if its login was revoked after it was issued, or may have been. It reads this replica's own
    /// copy.
    func requireInForce(app: Span<UInt8>, user: Span<UInt8>, issuedAt: NumericDate) throws(Rejection) {
        let seconds = issuedAt.wholeSeconds
        guard let latest = latest(app: app, user: user), seconds <= latest.moment else { return }
        throw doubt(latest) ?? Rejection(.loginRevoked)
    }

    /// The answer if it cannot be told whether a credential is older than its login's revocation; nil if it can.
    func doubt(_ revocation: Revocation) -> Rejection? {
        guard isInDoubt(revocation) else { return nil }
        return Rejection(
            .replayStoreUnavailable,
            "The login was revoked while a clock was ahead, so it cannot be known whether the token is older; the log tells more."
        )
    }
}
