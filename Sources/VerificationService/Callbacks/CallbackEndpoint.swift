internal import FoundationEssentials
internal import HTTP1
internal import HTTPServer
internal import LimitedLogin
internal import LoginStores
internal import OpenSSL
internal import Sockets

/// `POST /callbacks/deauthorize` and `POST /callbacks/data-deletion`: what Facebook tells of a person, verified, remembered
/// and passed on to the app's backend.
///
/// The worker never waits: the request is parked until the revocation is remembered and another thread has told the
/// backend.
enum CallbackEndpoint {
    /// Greatest body in bytes: that of the signed request itself.
    static let bodyLimit = SignedRequest.byteLimit
    /// The most callbacks of one worker that wait: more than all threads and their queue together take.
    static let waitingLimit = 256
    /// How much longer than its delivery a request waits: the delivery's own failure says more than that time is over.
    private static let grace = Duration.milliseconds(250)

    static func answer(_ kind: CallbackKind) -> Route.Answer {
        { worker, head, bytes, body, context, response throws(Problem) in
            let patience: MonotonicInstant
            do throws(Problem) {
                let event = try CallbackEvent(kind, body, worker.settings)
                patience = try begin(event, worker, trace: TraceParent.passedOn(head, bytes), context)
            } catch {
                worker.core.metrics.count(kind, error.code)
                throw error
            }
            // Where there is no backend and no Redis the answer is there already.
            return try worker.goOn(context.again, &response) ?? .wait(until: patience)
        }
    }

    /// Remembers the revocation, and has the backend told.
    /// - Returns: until when the request waits.
    private static func begin(
        _ event: CallbackEvent,
        _ worker: WorkerParts,
        trace: String?,
        _ context: RequestContext
    ) throws(Problem) -> MonotonicInstant {
        let (webhook, sender, jobs) = (worker.settings.webhook, worker.core.webhooks, worker.callbacks)
        let deadline = context.now + (sender?.limits.deliveryTime ?? FirstUse.patience)
        // The log says why the backend has not taken it; Facebook learns only that it failed.
        let notDelivered = Problem(.callbackNotDelivered, "The app's backend has not taken it; send it again.")
        let late = continuation(
            event,
            webhook,
            .failure(webhook == nil ? RevocationsEndpoint.unavailable : notDelivered)
        )
        let isBegun = jobs.begin(context, keeping: late, until: deadline + grace) { request in
            // At most the present, for the store takes no later moment.
            let (app, user) = (event.appID.utf8, event.userID.utf8)
            worker.core.revocations.revoke(app: app.span, user: user.span, at: event.issuedAt) { answer in
                // The backend is told whether or not the other replicas are: the person has left all the same.
                let finish = { @Sendable (delivery: WebhookSender.Outcome) in
                    let told: Result<DeletionStatus?, Problem> =
                        answer == .remembered
                        ? delivery.mapError { _ in notDelivered } : .failure(RevocationsEndpoint.unavailable)
                    jobs.finish(request, continuation(event, webhook, told), now: MonotonicClock.now())
                }
                guard let webhook, let sender else { return finish(.success(nil)) }
                sender.submit(event, to: webhook, until: deadline, trace: trace, finish)
            }
            return true
        }
        guard isBegun else { throw Problem(.overloaded, "Too many callbacks are waiting; send it again.") }
        return deadline + grace
    }

    /// Answers Facebook by what came of telling the backend.
    private static func continuation(
        _ event: CallbackEvent,
        _ webhook: WebhookTarget?,
        _ told: Result<DeletionStatus?, Problem>
    ) -> WorkerParts.Continuation {
        { worker, _, response throws(Problem) in
            let metrics = worker.core.metrics
            switch told {
            case .failure(let problem):
                metrics.count(event.kind, problem.code)
                throw problem
            case .success(let status):
                metrics.count(event.kind, nil)
                VerifyEndpoint.addFields(to: &response)
                if event.kind == .dataDeletion, let webhook {
                    // What Facebook shows the person: the backend's own page and code, or else these.
                    let (page, code) = ("\(webhook.statusURL)?code=\(event.confirmationCode)", event.confirmationCode)
                    (status ?? DeletionStatus(url: page, confirmationCode: code)).write(to: &response.body)
                } else {
                    JSONWriter.raw("{}", to: &response.body)
                }
                return .done
            }
        }
    }
}

/// The callbacks that Facebook makes (developers.facebook.com/docs/facebook-login/guides/advanced/manual-flow, "Deauthorize
/// Callback"; developers.facebook.com/docs/development/create-an-app/app-dashboard/data-deletion-callback).
package enum CallbackKind: String, CaseIterable, Sendable {
    /// A person removed the app.
    case deauthorize
    /// A person wants the app's backend to delete what it has of them.
    case dataDeletion = "data_deletion"

    var eventType: String {
        switch self {
        case .deauthorize: "login.deauthorized"
        case .dataDeletion: "user.data_deletion_requested"
        }
    }
}

/// What a good signed request tells, as the backend is told. A repetition of the request makes the same event.
package struct CallbackEvent: Sendable {
    let kind: CallbackKind
    let appID: String
    let userID: String
    /// When Facebook made the request, in seconds since 1970.
    let issuedAt: Int64
    /// The `webhook-id`, by which the backend knows a repetition.
    let id: String
    /// 32 letters and digits. They follow from the signed request and cannot be guessed without it.
    let confirmationCode: String

    /// Verifies the signed request in a form. Nothing has happened yet when it is refused.
    init(_ kind: CallbackKind, _ body: Span<UInt8>, _ settings: RuntimeSettings) throws(Problem) {
        // They were there when the head came; a reload in between may have taken them away.
        guard let secrets = settings.appSecrets else { throw Problem(.notFound, Requirement.callbacks.sentence) }
        guard let form = FormParameters(body, 0..<body.count), form.count(of: "signed_request") == 1,
            let text = form.first("signed_request")
        else { throw Problem(.invalidRequest, "The form must have signed_request exactly once.") }
        let now = try ServiceClock.now()
        do throws(SignedRequestRejection) {
            let request = try SignedRequest(
                verifying: text.span,
                secrets: secrets.signers,
                clockSkewSeconds: settings.verifier.policy.clockSkewSeconds,
                now: now
            )
            // The signature is as good as a random number to everybody but Facebook and this app. Its padding is no part.
            var signature = text.prefix { $0 != UInt8(ascii: ".") }
            while signature.last == UInt8(ascii: "=") { signature.removeLast() }
            guard let name = try? Self.name("webhook", kind, signature),
                let confirmationCode = try? Self.name("confirmation", kind, signature)
            else { throw .cannotVerify }
            self.kind = kind
            (appID, userID, issuedAt) = (request.appID, request.userID, request.issuedAt.wholeSeconds)
            (id, self.confirmationCode) = ("msg_" + name, confirmationCode)
        } catch {
            guard error != .cannotVerify else { throw Problem(.internalError, error.description) }
            throw Problem(.invalidSignedRequest, error.description)
        }
    }

    /// 32 hexadecimal digits that follow from the request; those of another purpose or callback do not tell them.
    private static func name(
        _ purpose: StaticString,
        _ kind: CallbackKind,
        _ signature: ArraySlice<UInt8>
    ) throws(OpenSSLError) -> String {
        let text = Array("limited-login:\(purpose):\(kind.rawValue):".utf8) + signature
        return String(try SHA256.digest(of: text.span).hexadecimal.prefix(32))
    }

    var content: [UInt8] {
        var body: [UInt8] = []
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("type", kind.eventType, to: &body)
        let moment = Date(timeIntervalSince1970: Double(issuedAt)).formatted(Date.ISO8601FormatStyle())
        JSONWriter.member("timestamp", moment, to: &body)
        JSONWriter.name("data", to: &body)
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("app_id", appID, to: &body)
        JSONWriter.member("user_id", userID, to: &body)
        JSONWriter.member("issued_at", Int(issuedAt), to: &body)
        JSONWriter.member("confirmation_code", confirmationCode, to: &body)
        JSONWriter.raw("}}", to: &body)
        return body
    }
}
