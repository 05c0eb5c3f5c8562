package import HTTP1
internal import KeySets
internal import LimitedLogin
internal import Logging
package import Networking

/// Answers the requests of one worker: finds the route, calls its endpoint, writes problems.
///
/// All its memory is reused from request to request; it is only ever called on its worker's thread.
package final class ServiceHandler: HTTPRequestHandler {
    private let core: ServiceCore
    private let listener: ListenerRole
    private let workerSettings: WorkerSettings
    private let verifyEndpoint: VerifyEndpoint
    private let authEndpoint: AuthEndpoint
    private let introspectEndpoint: IntrospectEndpoint
    private let noncesEndpoint: NoncesEndpoint
    private let graphEndpoint: GraphEndpoint
    private let health: HealthEndpoint
    private var requestID: [UInt8] = []
    /// The connection and the place on it of the request that `requestID` names.
    private var named: (connection: UInt64, requestsBefore: Int) = (0, -1)
    private var failures: UInt64 = 0
    private var durations: RequestDurations
    private var lastRoute = Route.unmatched
    private var lastMethod = HTTPMethod.unrecognized

    package init(core: ServiceCore, listener: ListenerRole) {
        self.core = core
        self.listener = listener
        let workerSettings = WorkerSettings(publisher: core.settings)
        self.workerSettings = workerSettings
        let judge = TokenJudge(cache: core.cache, workerKeys: WorkerKeys(cache: core.cache))
        verifyEndpoint = VerifyEndpoint(core: core, workerSettings: workerSettings, judge: judge)
        authEndpoint = AuthEndpoint(judge: judge)
        introspectEndpoint = IntrospectEndpoint(judge: judge)
        noncesEndpoint = NoncesEndpoint(core: core, workerSettings: workerSettings)
        graphEndpoint = GraphEndpoint(workers: core.graph, judge: judge)
        health = HealthEndpoint(core: core)
        durations = RequestDurations(metrics: core.metrics)
    }

    package func attach(_ waker: RequestWaker) {
        verifyEndpoint.firstUse.jobs.attach(waker)
        graphEndpoint.attach(waker)
    }

    package func didAbandon(_ request: ParkedRequest) {
        verifyEndpoint.firstUse.jobs.abandon(request)
        graphEndpoint.abandon(request)
    }

    package func receiveHead(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> HeadDecision {
        let route = begin(head, bytes, context)
        do throws(Problem) {
            if route == .auth {
                try requireGateway()
                return .ignoreBody
            }
            try requireMethod(head, route, &response)
            if head.method == .options {
                response.status = 204
                if route == .unmatched { response.addField("Allow: GET, HEAD, POST, OPTIONS") }
                response.addField("X-Request-Id", requestID)
                return .respond
            }
            switch route {
            case .verify:
                try requireCaller(head, bytes, &response)
                try VerifyEndpoint.requireJSON(head, bytes: bytes, response: &response)
                return .readBody(atMost: VerifyEndpoint.bodyLimit)
            case .introspect:
                try requireCaller(head, bytes, &response, isNeeded: true)
                try IntrospectEndpoint.requireForm(head, bytes: bytes, response: &response)
                return .readBody(atMost: IntrospectEndpoint.bodyLimit)
            case .nonces:
                workerSettings.refresh()
                _ = try NoncesEndpoint.requireIssuer(workerSettings.settings)
                try requireCaller(head, bytes, &response)
                try NoncesEndpoint.requireJSON(head, bytes: bytes, response: &response)
                return .readBody(atMost: NonceRequest.bodyLimit)
            case .userPermissions, .userPermission:
                try requireGraph(head, bytes, &response)
                return .readBody(atMost: 0)
            case .uninstall:
                try requireGraph(head, bytes, &response)
                try VerifyEndpoint.requireJSON(head, bytes: bytes, response: &response)
                return .readBody(atMost: VerifyEndpoint.bodyLimit)
            case .openapi:
                response.addField("Content-Type: application/json")
                response.body.append(contentsOf: OpenAPIDocument.bytes)
            case .livez, .readyz, .healthz:
                try health.answer(route, isVerbose: Self.isVerbose(head, bytes), context: context, response: &response)
            case .metrics:
                response.addField("Content-Type: text/plain; version=0.0.4; charset=utf-8")
                response.body.append(contentsOf: core.exposition().utf8)
            case .auth, .unmatched:
                throw Problem(.notFound, "There is nothing at this path; POST /verify judges a token.")
            }
            response.addField("X-Request-Id", requestID)
        } catch {
            ProblemAnswer.write(error, requestID: requestID, to: &response)
            if core.logger.logLevel <= .debug { log("request refused", error, head, bytes) }
        }
        return .respond
    }

    package func receiveRequest(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        body: Span<UInt8>,
        visit: RequestVisit,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> RequestDecision {
        let route = begin(head, bytes, context)
        do throws(Problem) {
            if let moment = try judge(route, head, bytes, body, visit, context, &response) {
                return .park(until: moment)
            }
            response.addField("X-Request-Id", requestID)
            if route == .nonces { return .respond }
            if route.needsGraph {
                if core.logger.logLevel <= .debug { log("Graph did as asked", nil, head, bytes) }
            } else if route == .introspect, let refusal = introspectEndpoint.refusal {
                // Introspection answers 200 for any token.
                core.metrics.countRefused(refusal)
                if core.logger.logLevel <= .debug { log("verification refused", nil, head, bytes) }
            } else {
                core.metrics.countAccepted()
                if core.logger.logLevel <= .debug { log("verification accepted", nil, head, bytes) }
            }
        } catch {
            response.reset()
            ProblemAnswer.write(error, requestID: requestID, to: &response)
            if route.isVerdict || route == .uninstall && error.code.isVerdict {
                core.metrics.countRefused(error.code)
            }
            if core.logger.logLevel <= .debug {
                log(route.isVerdict ? "verification refused" : "request refused", error, head, bytes)
            }
        }
        return .respond
    }

    /// Has the endpoint of the route answer, or say until when the request must wait.
    @inline(__always)
    private func judge(
        _ route: Route,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ body: Span<UInt8>,
        _ visit: RequestVisit,
        _ context: RequestContext,
        _ response: inout HTTPResponse
    ) throws(Problem) -> MonotonicInstant? {
        switch route {
        case .auth:
            return try authEndpoint.answer(
                head,
                bytes,
                workerSettings.settings.unboundVerifier,
                visit: visit,
                context: context,
                response: &response
            )
        case .introspect:
            return try introspectEndpoint.answer(
                body,
                workerSettings.settings.unboundVerifier,
                visit: visit,
                context: context,
                response: &response
            )
        case .nonces:
            try noncesEndpoint.answer(body, response: &response)
            return nil
        case .userPermissions, .userPermission, .uninstall:
            return try graphEndpoint.answer(
                route,
                head,
                bytes,
                body,
                workerSettings.settings,
                visit: visit,
                context: context,
                response: &response
            )
        default: return try verifyEndpoint.answer(body, visit: visit, context: context, response: &response)
        }
    }

    package func renderFailure(_ failure: HTTPFailure, response: inout HTTPResponse) {
        lastRoute = .unmatched
        lastMethod = .unrecognized
        failures += 1
        named = (0, -1)
        requestID.removeAll(keepingCapacity: true)
        core.identifiers.append(failure: failures, to: &requestID)
        let problem = Problem(ProblemCode(serverStatus: Int(failure.status)), FailureSentence.of(failure))
        response.addField("Content-Type: application/problem+json")
        response.addField("Cache-Control: no-store")
        response.addField("X-Request-Id", requestID)
        ProblemAnswer.writeBody(problem, requestID: requestID, to: &response.body)
    }

    package func isExemptFromOverload(_ head: borrowing RequestHead, bytes: Span<UInt8>) -> Bool {
        Route(head, bytes: bytes, listener: listener).isHealth
    }

    package func didRespond(status: UInt16, context: RequestContext) {
        // The context's own "now" is the worker's last event: before the verdict.
        durations.record(
            MonotonicClock.now().nanoseconds(since: context.firstByteAt),
            route: lastRoute,
            method: lastMethod,
            status: status
        )
    }

    private func begin(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ context: RequestContext) -> Route {
        let route = Route(head, bytes: bytes, listener: listener)
        lastRoute = route
        lastMethod = head.method
        let request = (context.connectionID, context.requestsBefore)
        // Most bodies come with their head, so that the request has its name already.
        if named != request {
            named = request
            requestID.removeAll(keepingCapacity: true)
            core.identifiers.append(head, bytes: bytes, context: context, to: &requestID)
        }
        return route
    }

    /// 501 for a method nobody knows, 405 with `Allow` for one this path has not (RFC 9110 sections 9.1, 15.5.6).
    private func requireMethod(
        _ head: borrowing RequestHead,
        _ route: Route,
        _ response: inout HTTPResponse
    ) throws(Problem) {
        if head.method == .unrecognized {
            throw Problem(.notImplemented, "The request method is not known to this server.")
        }
        if route == .unmatched {
            if head.method == .options { return }
            if head.method == .connect {
                response.addField("Allow: GET, HEAD, POST, OPTIONS")
                throw Problem(.methodNotAllowed, "This server is no proxy.")
            }
            return
        }
        let isAllowed = route.allows(head.method)
        if !isAllowed || head.method == .options { response.addField(route.allow) }
        if !isAllowed { throw Problem(.methodNotAllowed, "The method is not allowed at this path; see Allow.") }
    }

    /// Where clients are configured, the caller must be one of them; asked before a byte of the body is read.
    private func requireCaller(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ response: inout HTTPResponse,
        isNeeded: Bool = false
    ) throws(Problem) {
        workerSettings.refresh()
        let clients = workerSettings.settings.clients
        guard clients != nil || isNeeded else { return }
        if !isNeeded, workerSettings.settings.callersMayBeUnknown, !CallerCredentials.arePresent(head, bytes: bytes) {
            return
        }
        let credentials = CallerCredentials(head, bytes: bytes)
        if let credentials, let clients, let client = clients.client(presenting: credentials, in: bytes) {
            core.metrics.countRequest(client: clients.names[client])
            return
        }
        core.metrics.countRefused(.unauthorizedClient)
        // RFC 6750 section 3: no error code where no credentials came.
        response.addField(
            credentials == nil
                ? "WWW-Authenticate: Bearer realm=\"limited-login\""
                : "WWW-Authenticate: Bearer realm=\"limited-login\", error=\"invalid_token\""
        )
        // RFC 6749 section 5.2: OAuth clients authenticate by Basic, so a challenge of that scheme stands beside it.
        response.addField("WWW-Authenticate: Basic realm=\"limited-login\"")
        throw Problem(
            .unauthorizedClient,
            clients == nil
                ? "Only callers with a key may ask this, and no client_keys_file is configured."
                : "The caller must present its key: Authorization: Bearer or Basic, or X-Api-Key."
        )
    }

    /// The gateways' routes are there only where they are configured: a bearer token is tied to no login.
    private func requireGateway() throws(Problem) {
        workerSettings.refresh()
        guard workerSettings.settings.gatewayIsEnabled else {
            throw Problem(.notFound, "The routes for gateways are disabled; see LIMITED_LOGIN_GATEWAY.")
        }
    }

    /// Where Graph can be asked, and by callers with a key alone: who may revoke a login may end anybody's.
    private func requireGraph(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ response: inout HTTPResponse
    ) throws(Problem) {
        workerSettings.refresh()
        _ = try GraphEndpoint.require(workerSettings.settings)
        try requireCaller(head, bytes, &response, isNeeded: true)
    }

    /// Verdicts are told to the caller; the log has them at debug level, so that a flood of bad tokens cannot fill it.
    /// Nothing of a token or of the person it is about is among the facts.
    private func log(
        _ message: Logger.Message,
        _ problem: Problem?,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>
    ) {
        var facts: Logger.Metadata = ["request_id": "\(String(decoding: requestID, as: UTF8.self))"]
        if let problem {
            facts["code"] = "\(problem.code.text)"
            if let claim = problem.claim { facts["claim"] = "\(claim)" }
            if let failure = problem.graph?.failure { failure.describe(in: &facts) }
        }
        if let traceID = TraceParent.traceID(head, bytes: bytes) {
            var text: [UInt8] = []
            text.append(bytes, traceID)
            facts["trace_id"] = "\(String(decoding: text, as: UTF8.self))"
        }
        core.logger.debug(message, metadata: facts)
    }

    private static func isVerbose(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Bool {
        guard let query = head.query else { return false }
        return bytes.equal(query, "verbose") || bytes.equal(query, "verbose=1") || bytes.equal(query, "verbose=true")
    }
}
