internal import LLBytes
package import LLHTTP
internal import LLJOSE
package import LLStores
package import LimitedLogin
package import LimitedLoginKeys
package import Logging
internal import Synchronization

/// The state that all workers share. A verdict takes no lock here.
package final class ServiceCore: Sendable {
    package let settings: Published<RuntimeSettings>
    package let cache: JWKSetCache
    package let replayStore: ReplayStore
    package let metrics: ServiceMetrics
    package let logger: Logger
    package let identifiers: RequestIdentifier
    /// Logs each answer of `/auth` and `/verify`; nil if `audit_log` is off.
    package let auditLogger: Logger?
    package let signatureCacheEntries: Int
    /// Nil if the service has no credentials for Graph.
    package let graph: GraphWorkers?
    /// Nil if no backend is configured.
    package let webhooks: WebhookSender?
    let callbackLedger: Locked<CallbackLedger>
    package let exposition: @Sendable () -> String
    /// The name of a thread that has made no progress for too long; nil if there is none.
    package let stuckThread: @Sendable (_ now: MonotonicInstant) -> String?
    private let draining = Atomic<Bool>(false)

    package init(
        settings: RuntimeSettings,
        cache: JWKSetCache,
        replayStore: ReplayStore = .memory(MemoryReplayStore(now: WallClock.unixMilliseconds())),
        metrics: ServiceMetrics,
        logger: Logger,
        identifiers: RequestIdentifier,
        signatureCacheEntries: Int = VerifiedSignatureCache.defaultCapacity,
        auditLogger: Logger? = nil,
        graph: GraphWorkers? = nil,
        webhooks: WebhookSender? = nil,
        stuckThread: @escaping @Sendable (_ now: MonotonicInstant) -> String? = { _ in nil },
        exposition: @escaping @Sendable () -> String
    ) {
        self.settings = Published(settings)
        self.cache = cache
        self.replayStore = replayStore
        self.metrics = metrics
        self.logger = logger
        self.identifiers = identifiers
        self.signatureCacheEntries = signatureCacheEntries
        self.auditLogger = auditLogger
        self.graph = graph
        self.webhooks = webhooks
        callbackLedger = Locked(CallbackLedger(places: (webhooks?.limits ?? WebhookLimits()).places))
        self.exposition = exposition
        self.stuckThread = stuckThread
    }

    /// True once the service has been told to stop: readiness fails from then on.
    package var isDraining: Bool { draining.load(ordering: .acquiring) }

    package var revocations: Revocations { replayStore.revocations }

    package func beginDraining() { draining.store(true, ordering: .releasing) }
}

/// The state that the requests of one worker share. Only the worker's thread uses it.
final class WorkerContext {
    /// Each job is kept with the refusal for a job that does not end in time.
    typealias Jobs = BackgroundJobs<(late: Rejection, subject: MetricSubject?), Route.Answer>

    let core: ServiceCore
    let listener: ListenerRole
    private var copyOfSettings: Published<RuntimeSettings>.Copy
    let judge: TokenJudge
    let ownTokens: OwnTokenJudge
    let revocations: Revocations
    /// The credential or callback under which the outcome is counted; nil before it is known.
    var subject: MetricSubject?
    /// The client that the credentials in the request's form name; nil before the form is read, and again after a wait.
    var clientOfForm: Int?
    private var requestCounters: [String: Counter] = [:]
    private var weakNonces = RefusalPace()
    /// Memory for the bodies of `POST /verify`.
    var document = JSONDocument(limits: .ofRequest)
    /// The jobs that requests wait for. 8,192: the requests of a busy worker in one second. The threads that call Graph
    /// and the backend have lower limits of their own, so that their jobs cannot fill these places.
    let jobs = Jobs(capacity: 8_192)

    init(core: ServiceCore, listener: ListenerRole) {
        self.core = core
        self.listener = listener
        copyOfSettings = Published.Copy(core.settings)
        revocations = core.revocations
        // Tokens that this service issues get half of the memory for signatures.
        let capacity = copyOfSettings.value.tokens == nil ? 0 : core.signatureCacheEntries / 2
        ownTokens = OwnTokenJudge(capacity: capacity, revocations: revocations, metrics: core.metrics)
        ownTokens.use(copyOfSettings.value)
        judge = TokenJudge(core, signatureCapacity: core.signatureCacheEntries - capacity, ownTokens)
    }

    /// The settings in force when the request's head was read.
    var settings: RuntimeSettings { copyOfSettings.value }

    func refreshSettings() {
        guard copyOfSettings.isOld else { return }
        copyOfSettings = copyOfSettings.renewed
        ownTokens.use(settings)
    }

    func abandon(_ request: ParkedRequest) {
        judge.abandon(request)
        jobs.abandon(request)
    }

    /// Forgets the request before this one.
    func begin() { (subject, clientOfForm) = (nil, nil) }

    @inline(__always)
    func run(_ answer: Route.Answer, _ exchange: inout HTTPExchange, _ bytes: Span<UInt8>) throws(Rejection) -> Outcome
    {
        let isFirst = exchange.context.visit == .first
        if !isFirst, let outcome = try answerAfterJob(&exchange, bytes) { return outcome }
        do throws(Rejection) {
            return try answer(self, &exchange, bytes)
        } catch {
            // After a reload the route may refuse before the token is judged again.
            if !isFirst { judge.abandon(exchange.context.request) }
            throw error
        }
    }

    /// Nil if the request waited for no job, but for keys: it begins anew.
    private func answerAfterJob(_ exchange: inout HTTPExchange, _ bytes: Span<UInt8>) throws(Rejection) -> Outcome? {
        switch jobs.visit(exchange.context) {
        case .none: return nil
        case .waiting(let moment): return .later(until: moment)
        case .expired(let kept):
            subject = kept.subject
            throw kept.late
        case .done(let kept, let next):
            subject = kept.subject
            return try next(self, &exchange, bytes)
        }
    }

    /// Lets a request wait for a job on another thread.
    /// - Parameters:
    ///   - late: The refusal if the job has not ended at `deadline`.
    ///   - busy: The refusal if too many requests wait, or the job cannot begin.
    ///   - start: Begins the job, which answers the request from any thread; false if it cannot begin.
    func wait(
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>,
        until deadline: MonotonicInstant,
        late: Rejection,
        busy: Rejection,
        _ start: (WaitingRequest) -> Bool
    ) throws(Rejection) -> Outcome {
        let isBegun = jobs.begin(exchange.context, keeping: (late, subject), until: deadline) { name in
            start(WaitingRequest(name: name, jobs: jobs))
        }
        guard isBegun else { throw busy }
        // A store in memory has answered already.
        return try answerAfterJob(&exchange, bytes) ?? .later(until: deadline)
    }

    /// The person in the audit's lines: SHA-256 of `APP_ID:USER_ID`, which an operator can compute from the user id.
    static func hash(appID: String, userID: String) -> String? {
        try? SHA256.digest(of: Array("\(appID):\(userID)".utf8).span).hexadecimal
    }

    func auditName(_ appID: @autoclosure () -> String, _ userID: @autoclosure () -> String) -> String? {
        core.auditLogger == nil ? nil : Self.hash(appID: appID(), userID: userID())
    }

    func auditName(_ claims: VerifiedClaims, _ payload: [UInt8], app: Range<Int>? = nil) -> String? {
        auditName(JSONText.value(payload.span, app ?? claims.audience), JSONText.value(payload.span, claims.subject))
    }
}

/// A request that waits for a job, as the job's thread sees it.
struct WaitingRequest: Sendable {
    fileprivate let name: ParkedRequest
    fileprivate let jobs: WorkerContext.Jobs

    /// False once the client has left or the time is over.
    var isAwaited: Bool { jobs.isAwaited(name) }

    func finish(_ next: @escaping Route.Answer) { jobs.finish(name, next, now: MonotonicClock.now()) }
}

extension WorkerContext {
    /// The caller of a request, as the owner of scarce resources: its key if keys are configured, otherwise its
    /// address.
    func owner(_ exchange: inout HTTPExchange, _ bytes: Span<UInt8>) -> JobOwner {
        if let client = client(exchange.head, bytes) { return .client(client) }
        return exchange.context.peerAddress.map { .peer(Peer($0)) } ?? .all
    }

    func callerName(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> String? {
        client(head, bytes).flatMap { settings.clients?.names[$0] }
    }

    /// The client with the key in the head, or in the form that was read just now; nil if no client has this key.
    private func client(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Int? {
        guard let clients = settings.clients else { return nil }
        let credentials = CallerCredentials(head, bytes: bytes)
        return credentials.flatMap { clients.client(presenting: $0, in: bytes) } ?? clientOfForm
    }

    /// Counts a login's nonce if it is weak, and warns of its caller, ten times a second at most.
    func count(_ nonce: [UInt8]?, _ exchange: inout HTTPExchange, _ bytes: Span<UInt8>) {
        guard let nonce, Nonce.isWeak(nonce) else { return }
        core.metrics.count(.weakNonce)
        guard weakNonces.admits(at: exchange.context.now) else { return }
        var facts: Logger.Metadata = ["characters": "fewer than \(Nonce.weakCharacterCount)"]
        facts["caller"] = callerName(exchange.head, bytes).map { "\($0)" }
        core.logger.warning("a nonce is so short that it can be guessed", metadata: facts)
    }

    /// Checks the caller's key before the body is read, and refuses a caller that may not use the route.
    func require(_ caller: Caller, _ head: borrowing RequestHead, _ bytes: Span<UInt8>) throws(Rejection) {
        let clients = settings.clients
        guard caller != .anybody, clients != nil || caller != .knownWhereConfigured else { return }
        let count = CallerCredentials.count(in: head, bytes)
        if caller == .knownByForm {
            // RFC 6749 section 2.3: one method of authentication.
            guard count <= 1 else { throw Rejection(.invalidRequest, Self.severalKeys) }
            // The form may have the credentials; the endpoint checks them.
            if count == 0, clients != nil, let type = head.value(of: "content-type", in: bytes),
                MediaType.isForm(bytes, type)
            {
                return
            }
        }
        let credentials = CallerCredentials(head, bytes: bytes)
        let client = credentials.flatMap { clients?.client(presenting: $0, in: bytes) }
        try admit(client, hasCredentials: credentials != nil, count: count)
    }

    private static let severalKeys = "The caller's key is in several places of the request; one is allowed."

    /// The form of a request; its key is checked if the head has none (`client_secret_post`, RFC 6749 section 2.3.1).
    func form(_ exchange: inout HTTPExchange, _ bytes: Span<UInt8>) throws(Rejection) -> FormParameters {
        guard let form = FormParameters(bytes, exchange.body) else {
            throw Rejection(.invalidRequest, "The form has a broken escape or too many parameters.")
        }
        let secret = form.first("client_secret")
        guard CallerCredentials.count(in: exchange.head, bytes) == 0 else {
            guard secret != nil else { return form }
            throw Rejection(.invalidRequest, Self.severalKeys)
        }
        let client = form.first("client_id").flatMap { name in
            settings.clients?.client(presenting: .named(name: name, key: secret ?? []), in: bytes)
        }
        try admit(client, hasCredentials: secret != nil, isAgain: exchange.context.visit != .first)
        clientOfForm = client
        return form
    }

    /// - Parameter isAgain: True after a wait: the request was counted before.
    private func admit(_ client: Int?, hasCredentials: Bool, count: Int = 1, isAgain: Bool = false) throws(Rejection) {
        let clients = settings.clients
        if let client, let clients {
            guard !isAgain else { return }
            let name = clients.names[client]
            if let counter = requestCounters[name] { return counter.increment() }
            // Kept, so that the labels are not joined again.
            let counter = core.metrics.requests(of: name)
            requestCounters[name] = counter
            return counter.increment()
        }
        core.metrics.count(.verdict(.idToken, .unauthorizedClient))
        let detail =
            switch (clients, hasCredentials) {
            case (nil, _): "Only callers with a key may ask this, and no client_keys_file is configured."
            case (_, true): "This key is none of client_keys_file's."
            case (_, false) where count > 1: Self.severalKeys
            default: "The caller must present its key: Authorization: Bearer or Basic, or X-Api-Key."
            }
        throw Rejection(.unauthorizedClient, detail).with { $0.hasCredentials = hasCredentials }
    }
}

/// The settings that a reload can change. A worker uses either the old ones or the new ones, never a mixture.
package final class RuntimeSettings: Sendable {
    package let verifier: TokenVerifier
    package let clients: ClientKeys?
    package let gateway: GatewaySettings?
    package let nonceLifetimeSeconds: Int
    package let rejectsReplays: Bool
    package let appSecrets: AppSecrets?
    /// One for each app; nil if access tokens are refused.
    package let accessTokenApps: [AppSecret]?
    package let webhook: WebhookTarget?
    package let tokens: TokenSettings?
    /// Judges tokens at `/auth` and `/introspect` by the same policy. Callers there cannot know the login.
    package let unboundVerifier: TokenVerifier

    package init(
        verifier: TokenVerifier,
        clients: ClientKeys?,
        gateway: GatewaySettings? = nil,
        nonceLifetimeSeconds: Int = Int(NonceIssuer.defaultLifetime.components.seconds),
        rejectsReplays: Bool = false,
        appSecrets: AppSecrets? = nil,
        acceptsAccessTokens: Bool = false,
        webhook: WebhookTarget? = nil,
        tokens: TokenSettings? = nil
    ) {
        self.nonceLifetimeSeconds = nonceLifetimeSeconds
        self.rejectsReplays = rejectsReplays
        self.verifier = verifier
        self.clients = clients
        self.gateway = gateway
        self.appSecrets = appSecrets
        accessTokenApps = acceptsAccessTokens ? appSecrets?.all : nil
        self.webhook = webhook
        self.tokens = tokens
        unboundVerifier = verifier.acceptingUnbound()
    }

    func app(named appID: String?) throws(Rejection) -> String {
        let configured = verifier.policy.appIDs
        guard let appID else {
            guard configured.count == 1 else {
                throw Rejection(.invalidRequest, "Several apps are configured, so app_id must say whose login it is.")
            }
            return configured[0]
        }
        // Bytes are compared, because Swift treats different Unicode spellings of a text as equal.
        guard configured.contains(where: { $0.utf8.elementsEqual(appID.utf8) }) else { throw Rejection(.unknownApp) }
        return appID
    }
}
