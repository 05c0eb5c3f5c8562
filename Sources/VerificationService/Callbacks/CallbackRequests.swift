internal import HTTP1
internal import HTTPServer
internal import Sockets

/// The callbacks of one worker that wait until the revocation is remembered and the backend has been told.
///
/// The worker never waits: the request is parked while another thread tells the backend.
final class CallbackRequests {
    /// The most callbacks of one worker that wait: more than all threads and their queue together take.
    static let waitingLimit = 256
    /// How much longer than its delivery a request waits: the delivery's own failure says more than that time is over.
    private static let grace = Duration.milliseconds(250)

    /// What a request keeps while it waits.
    struct Kept: Sendable {
        let event: CallbackEvent
        let webhook: WebhookTarget?
    }

    /// What came of it.
    struct Result: Sendable {
        /// Whether every replica will know of the revocation; this one does.
        let isRemembered: Bool
        /// Nil where no backend is to be told.
        let delivery: WebhookSender.Outcome?
    }

    private let sender: WebhookSender?
    let jobs = BackgroundJobs<Kept, Result>(capacity: waitingLimit)

    init(core: ServiceCore) {
        sender = core.webhooks
    }

    /// Goes on with a request that was parked here.
    /// - Returns: nil where it was not.
    func revisit(
        _ context: RequestContext,
        _ visit: RequestVisit,
        _ response: inout HTTPResponse
    ) throws(Problem) -> Outcome? {
        switch jobs.visit(context.request, visit) {
        case .none: return nil
        case .waiting(let moment): return .wait(until: moment)
        case .expired: throw Self.notDelivered
        case .done(let kept, let result):
            guard result.isRemembered else { throw FirstUse.unavailable }
            try Self.write(kept, result.delivery, to: &response)
            return .done
        }
    }

    /// Remembers the revocation, and has the backend told.
    func begin(
        _ event: CallbackEvent,
        _ webhook: WebhookTarget?,
        _ visit: RequestVisit,
        _ context: RequestContext
    ) throws(Problem) -> Outcome {
        let request = context.request
        let deadline = context.now + (sender?.limits.deliveryTime ?? .zero)
        let patience = deadline + Self.grace
        // A request whose time is over may not wait anew.
        guard visit != .expired, jobs.begin(request, keeping: Kept(event: event, webhook: webhook), until: patience)
        else { throw Problem(.overloaded, "Too many callbacks are waiting; send it again.") }
        let isRemembered = true
        guard let webhook, let sender else {
            jobs.finish(request, Result(isRemembered: isRemembered, delivery: nil), now: MonotonicClock.now())
            return .wait(until: patience)
        }
        sender.submit(event, to: webhook, until: deadline) { [jobs] outcome in
            jobs.finish(request, Result(isRemembered: isRemembered, delivery: outcome), now: MonotonicClock.now())
        }
        return .wait(until: patience)
    }

    private static func write(
        _ kept: Kept,
        _ delivery: WebhookSender.Outcome?,
        to response: inout HTTPResponse
    ) throws(Problem) {
        var answer: DeletionStatus?
        switch delivery {
        case .failure: throw notDelivered
        case .success(let status): answer = status
        case nil: break
        }
        response.addField("Content-Type: application/json")
        response.addField("Cache-Control: no-store")
        guard kept.event.kind == .dataDeletion, let webhook = kept.webhook else {
            JSONWriter.raw("{}", to: &response.body)
            return
        }
        webhook.status(of: kept.event, answer).write(to: &response.body)
    }

    /// Facebook is not told why: the log says it to those who can mend it.
    private static var notDelivered: Problem {
        Problem(.callbackNotDelivered, "The app's backend has not taken it; send it again.")
    }
}
