internal import FoundationEssentials
internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LLStores
internal import LimitedLogin

/// `POST /callbacks/deauthorize` and `POST /callbacks/data-deletion`: Facebook's message about a person is verified,
/// remembered and passed on to the app's backend, unless another request does so or has done so.
enum CallbackEndpoint {
    static func answer(_ kind: CallbackKind) -> Route.Answer {
        { worker, exchange, bytes throws(Rejection) in
            let (webhook, core, order) = (worker.settings.webhook, worker.core, RevocationOrder(worker))
            guard let event = try CallbackEvent(kind, bytes.extracting(exchange.body), worker) else {
                write(nil, to: &exchange.response)
                return .done()
            }
            var own: DeletionStatus?
            if kind == .dataDeletion, let webhook, let code = event.confirmationCode {
                own = DeletionStatus(url: "\(webhook.statusURL)?code=\(code)", confirmationCode: code)
            }
            let (deadline, trace) = (exchange.context.now + order.time, TraceParent.passedOn(exchange.head, bytes))
            let until = deadline + RevocationOrder.grace
            let busy = Rejection(.overloaded, "Too many callbacks are waiting; send it again.")
            return try worker.wait(&exchange, bytes, until: until, late: order.late, busy: busy) { [own] waiting in
                let answer = { @Sendable (told: CallbackLedger.Outcome) in
                    waiting.finish { _, exchange, _ throws(Rejection) in
                        write(try told.get() ?? own, to: &exchange.response)
                        return .done()
                    }
                }
                switch core.callbackLedger.withLock({ $0.begin(event.id) }) {
                case .perform(let memory):
                    order.perform(event, memory, until: deadline, trace: trace) { told, result in
                        core.callbackLedger.withLock { $0.end(event.id, result) }
                        answer(told)
                    }
                case .answered(let status): answer(.success(status))
                case .refused:
                    core.webhooks?.refuse(event)
                    answer(.failure(RevocationOrder.notDelivered))
                case .underWay: answer(.failure(RevocationOrder.notDelivered))
                }
                return true
            }
        }
    }

    /// - Parameter status: The page and code for the person: the backend's own, or else the service's.
    private static func write(_ status: DeletionStatus?, to response: inout HTTPResponse) {
        VerifyEndpoint.addFields(to: &response)
        guard let status else { return JSONWriter.raw("{}", to: &response.body) }
        status.write(to: &response.body)
    }
}

/// The callbacks that Facebook makes (developers.facebook.com/docs/facebook-login/guides/advanced/manual-flow, "Deauthorize
/// Callback"; developers.facebook.com/docs/development/create-an-app/app-dashboard/data-deletion-callback).
package enum CallbackKind: String, Sendable {
    case deauthorize
    case dataDeletion = "data_deletion"
    /// No callback of Facebook's, but the end of a login that a caller asked for.
    case revocation

    var eventType: String {
        switch self {
        case .deauthorize: "login.deauthorized"
        case .dataDeletion: "user.data_deletion_requested"
        case .revocation: "login.revoked"
        }
    }
}

/// The event of a signed request or of a revocation, for the backend. A repeated signed request makes the same event.
package struct CallbackEvent: Sendable {
    let kind: CallbackKind
    let appID: String
    let userID: String
    let issuedAt: Int64
    /// The `webhook-id`. The backend detects a repetition by it.
    let id: String
    /// 32 letters and digits. They follow from the signed request and cannot be guessed without it. A revocation has none.
    var confirmationCode: String?

    /// The event of a login that is revoked now.
    init(revoking userID: String, of appID: String) {
        (kind, self.appID, self.userID) = (.revocation, appID, userID)
        (issuedAt, id) = (WallClock.unixSeconds(), "msg_" + UUID().uuidString)
    }

    /// Verifies a form's signed request; nil if a page removed the app, which names no person.
    init?(_ kind: CallbackKind, _ body: Span<UInt8>, _ worker: WorkerContext) throws(Rejection) {
        let settings = worker.settings
        guard let secrets = settings.appSecrets else { throw Requirement.callbacks.problem }
        guard let form = FormParameters(body, 0..<body.count), form.count(of: "signed_request") == 1,
            let text = form.first("signed_request")
        else { throw Rejection(.invalidRequest, "The form must have signed_request exactly once.") }
        worker.subject = .callback(kind)
        do throws(Rejection) {
            let (signers, skew) = (secrets.signers, settings.verifier.policy.clockSkew)
            let request = try SignedRequest(verifying: text.span, secrets: signers, clockSkew: skew, now: .now)
            // Only Facebook and this app can predict the signature. Its padding is left out.
            var signature = text.prefix { $0 != UInt8(ascii: ".") }
            while signature.last == UInt8(ascii: "=") { signature.removeLast() }
            // 32 hexadecimal digits; those of one purpose or callback do not reveal another's.
            func digits(_ purpose: StaticString) -> String? {
                let text = Array("limited-login:\(purpose):\(kind.rawValue):".utf8) + signature
                return (try? SHA256.digest(of: text.span).hexadecimal.prefix(32)).map { String($0) }
            }
            guard let name = digits("webhook"), let confirmationCode = digits("confirmation") else {
                throw .requestNotVerifiable
            }
            self.kind = kind
            (appID, userID, issuedAt) = (request.appID, request.userID, request.issuedAt.wholeSeconds)
            (id, self.confirmationCode) = ("msg_" + name, confirmationCode)
        } catch {
            if error == .requestOfNoPerson, kind == .deauthorize { return nil }
            throw error
        }
    }

    /// A moment in ISO 8601.
    static func text(of seconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(seconds)).formatted(Date.ISO8601FormatStyle())
    }

    var content: [UInt8] {
        var body: [UInt8] = []
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("type", kind.eventType, to: &body)
        JSONWriter.member("timestamp", Self.text(of: issuedAt), to: &body)
        JSONWriter.name("data", to: &body)
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("app_id", appID, to: &body)
        JSONWriter.member("user_id", userID, to: &body)
        JSONWriter.member("issued_at", Int(issuedAt), to: &body)
        if let confirmationCode { JSONWriter.member("confirmation_code", confirmationCode, to: &body) }
        JSONWriter.raw("}}", to: &body)
        return body
    }
}

/// The running callbacks, and those of the day: each `webhook-id` is delivered by one request at a time.
///
/// Every reader of a signed request can send it again, so a repetition takes no place from another callback: it is
/// refused while the first is delivered, and answered from memory afterwards. No clock is needed: a request older than a
/// day is refused earlier.
struct CallbackLedger: Sendable {
    /// The result for Facebook, with the backend's answer for the person if it gave one.
    typealias Outcome = Result<DeletionStatus?, Rejection>

    /// Greatest number of remembered ids. 4,096: a day of a busy app, in about 600 KB; 16 MiB with answers of the greatest
    /// size. A repetition of a forgotten one is delivered again, and the backend detects it by its `webhook-id`.
    static let memoryLimit = 4_096

    enum Memory: Sendable {
        case failed
        /// The backend accepted it, but the other replicas were not told of the revocation.
        case delivered(DeletionStatus?)
        /// Facebook got the answer that all is done.
        case acknowledged(DeletionStatus?)
    }

    enum Step {
        /// Revoke the login, call the backend unless that is remembered as done, then call ``CallbackLedger/end(_:_:)``.
        case perform(Memory?)
        case answered(DeletionStatus?)
        case refused
        /// Another request delivers the same callback.
        case underWay
    }

    private let places: Int
    /// The running deliveries; true for those that failed before.
    private var underWay: [String: Bool] = [:]
    private var memory: [String: Memory] = [:]
    private var order: [String] = []

    init(places: Int) { self.places = places }

    mutating func begin(_ id: String) -> Step {
        if underWay[id] != nil { return .underWay }
        let known = memory[id]
        if case .acknowledged(let status)? = known { return .answered(status) }
        let isRetry = known != nil
        // Half of the places are left to new ids.
        let retries = underWay.values.count { $0 }
        guard underWay.count < places, !isRetry || retries < max(1, places / 2) else { return .refused }
        underWay[id] = isRetry
        return .perform(known)
    }

    mutating func end(_ id: String, _ result: Memory) {
        underWay[id] = nil
        if memory.updateValue(result, forKey: id) == nil { order.append(id) }
        if order.count > Self.memoryLimit { memory[order.removeFirst()] = nil }
    }
}
