internal import LLBytes
package import LLHTTP
internal import LimitedLogin
internal import Logging

/// Answers one worker's requests: finds the route, checks the request, calls the endpoint, and counts the outcome.
package final class ServiceHandler: HTTPRequestHandler {
    package typealias HeadRefusal = @Sendable (_ exchange: inout HTTPExchange, _ bytes: Span<UInt8>) -> Bool

    private let core: ServiceCore
    private let refuses: HeadRefusal?
    private let worker: WorkerContext
    private let routes: [Route]
    private var requestID: [UInt8] = []
    /// The request that `requestID` and `place` belong to: its connection and its position there.
    private var named: ParkedRequest?
    /// The position of the request's route in `routes`; nil if no route has its path.
    private var place: Int?
    private var method = HTTPMethod.unrecognized
    /// The timers of requests, found without joining labels again. A worker serves few routes with few statuses.
    private var timers: [(place: Int?, method: HTTPMethod, status: UInt16, timer: Timer)] = []
    private var refusals = RefusalPace()

    /// - Parameter refuses: Answers a head that the service is not to see, and returns true.
    package init(core: ServiceCore, listener: ListenerRole, refuses: HeadRefusal? = nil) {
        self.core = core
        self.refuses = refuses
        worker = WorkerContext(core: core, listener: listener)
        routes = Route.table.filter { $0.listeners.contains(listener) }
    }

    deinit { reportUntold(.never) }

    package func attach(_ waker: @escaping RequestWaker) { worker.jobs.attach(waker) }

    package func didAbandon(_ request: ParkedRequest) { worker.abandon(request) }

    package func didHangUp(_ request: ParkedRequest) -> Bool { worker.judge.isWaiting(request) }

    package func willWait(at now: MonotonicInstant) -> MonotonicInstant {
        guard refusals.untoldCount > 0 else { return .never }
        reportUntold(now)
        return refusals.untoldCount > 0 ? refusals.secondEnds : .never
    }

    package func didReceiveNoTLS(at now: MonotonicInstant) {
        guard core.logger.logLevel <= .info, refusals.admits(at: now) else { return }
        let reason = "the bytes are no TLS: have the client speak https, and the balancer send no PROXY protocol header"
        core.logger.info("no handshake", metadata: ["reason": "\(reason)"])
    }

    package func receiveHead(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> HeadDecision {
        if let refuses, refuses(&exchange, bytes) { return .respond }
        begin(&exchange, bytes)
        do throws(Rejection) {
            guard let body = try check(&exchange, bytes) else {
                exchange.response.status = 204
                exchange.response.addField("X-Request-Id", requestID)
                return .respond
            }
            if let decision = body.decision { return decision }
        } catch {
            refuse(error, &exchange, bytes)
            return .respond
        }
        // A request without a body is answered after its head; none of them waits.
        _ = receiveRequest(&exchange, bytes: bytes)
        return .respond
    }

    package func receiveRequest(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> RequestDecision {
        begin(&exchange, bytes)
        // The head was accepted, so there is a route.
        guard let place else { return .respond }
        do throws(Rejection) {
            switch try worker.run(routes[place].answer, &exchange, bytes) {
            case .later(let moment): return .park(until: moment)
            case .inactive(let code): record(code, nil, nil, &exchange, bytes)
            case .done(let person): record(nil, nil, person, &exchange, bytes)
            }
            exchange.response.addField("X-Request-Id", requestID)
        } catch {
            assert(exchange.response.isEmpty, "written before the verdict")
            refuse(error, &exchange, bytes)
        }
        return .respond
    }

    package func renderFailure(_ failure: HTTPRefusal, _ exchange: inout HTTPExchange, bytes: Span<UInt8>) {
        (place, method, named) = (nil, .unrecognized, nil)
        core.identifiers.write(&exchange, bytes: bytes, into: &requestID)
        exchange.response.addField("Content-Type: application/problem+json")
        exchange.response.addField("Cache-Control: no-store")
        exchange.response.addField("X-Request-Id", requestID)
        var problem = Rejection(.ofServer(Int(failure.status)), failure.rawValue)
        let foreign = RequestMistake.protocolName(bytes)
        if let foreign { problem = Rejection(.invalidRequest, foreign.detail, hint: foreign.hint) }
        let route = find(exchange.head.path, bytes).map { routes[$0] }
        if problem.code == .bodyTooLarge, let limit = route?.body.limit {
            let sentence =
                limit > 0
                ? "The body is larger than the \(DecimalNumber.grouped(limit)) bytes that this path takes."
                : "This path takes no body."
            problem = Rejection(.bodyTooLarge, sentence)
        }
        worker.begin()
        let dialect = route?.dialect ?? .plain
        problem.writeBody(in: dialect, requestID: requestID, to: &exchange.response.body)
        // The server counts what it refuses for overload; a line for each would add to the load.
        if failure != .overloaded {
            noteRefusal(problem.code, reason: foreign.map { "\($0.detail) \($0.hint)" }, &exchange, bytes)
        }
    }

    package func isExemptFromOverload(_ head: borrowing RequestHead, bytes: Span<UInt8>) -> Bool {
        find(head.path, bytes).map { routes[$0].isHealth } ?? false
    }

    package func didRespond(status: UInt16, context: RequestContext) {
        // `context.now` is the time of the worker's last event, before the verdict.
        let duration = Int64(clamping: MonotonicClock.now().nanoseconds(since: context.firstByteAt))
        let (place, method) = (place, method)
        if let known = timers.first(where: { $0.place == place && $0.method == method && $0.status == status }) {
            return known.timer.recordNanoseconds(duration)
        }
        let path = place.map { routes[$0].path } ?? Route.unmatchedLabel
        let timer = core.metrics.requests(method.name, path, status)
        timers.append((place, method, status, timer))
        timer.recordNanoseconds(duration)
    }

    /// Finds the route and makes the request's identifier, unless they are known: most bodies arrive with their head.
    private func begin(_ exchange: inout HTTPExchange, _ bytes: Span<UInt8>) {
        worker.begin()
        let request = exchange.context.request
        // The two numbers identify the request; comparing the whole values takes more instructions.
        guard named?.connectionID != request.connectionID || named?.requestsBefore != request.requestsBefore else {
            return
        }
        named = request
        place = find(exchange.head.path, bytes)
        method = exchange.head.method
        core.identifiers.write(&exchange, bytes: bytes, into: &requestID)
    }

    @inline(__always)
    private func find(_ path: Range<Int>, _ bytes: Span<UInt8>) -> Int? {
        // By index: a closure over the elements would copy each row.
        routes.indices.first { routes[$0].matches(path, bytes) } ?? findBelowIssuer(path, bytes)
    }

    /// The route below the path of the issuer's URL.
    private func findBelowIssuer(_ path: Range<Int>, _ bytes: Span<UInt8>) -> Int? {
        guard let rest = worker.settings.tokens?.routePath(in: path, bytes) else { return nil }
        return routes.firstIndex { $0.isOfIssuer && $0.matches(rest, bytes) }
    }

    /// Checks a head against its route's row. Returns the body to read; nil for OPTIONS, which the header fields answer.
    private func check(_ exchange: inout HTTPExchange, _ bytes: Span<UInt8>) throws(Rejection) -> RequestBody? {
        if let place, routes[place].allows(method) {
            worker.refreshSettings()
            if let requirement = routes[place].requirement, !requirement.isMet(worker.settings) {
                throw requirement.problem
            }
            try worker.require(routes[place].caller, exchange.head, bytes)
            let body = routes[place].body
            try body.require(&exchange, bytes)
            return body
        }
        let route = place.map { routes[$0] }
        // An unknown method is 501 on every path (RFC 9110 section 9.1).
        guard method != .unrecognized else {
            throw Rejection(.notImplemented, "The request method is not known to this server.")
        }
        guard route != nil || method == .options || method == .connect else {
            let there = routes.filter { $0.requirement?.isMet(worker.settings) ?? true }
            throw RequestMistake.path(exchange.head.path, in: bytes, routes: there)
        }
        // For a path outside the table OPTIONS lists the methods of the other paths (RFC 9110 section 9.3.7).
        exchange.response.addField("Allow", route?.allow ?? "GET, HEAD, POST, OPTIONS")
        if method == .options { return nil }
        guard let route else { throw Rejection(.methodNotAllowed, "This server is no proxy.") }
        throw RequestMistake.method(method.name, allowed: route.methods ?? [])
    }

    private func refuse(_ problem: Rejection, _ exchange: inout HTTPExchange, _ bytes: Span<UInt8>) {
        assert(
            place.map { routes[$0].mayAnswer(problem.code) } ?? Rejection.Code.ofAnyPath.contains(problem.code),
            "undocumented: \(problem.code)"
        )
        let dialect = place.map { routes[$0].dialect } ?? .plain
        problem.write(in: dialect, requestID: requestID, to: &exchange.response)
        record(problem.code, problem, nil, &exchange, bytes)
    }

    /// Counts and logs the outcome of a request. No line contains a part of a token, a name or an e-mail address.
    /// - Parameters:
    ///   - code: Nil if the request was not refused.
    ///   - person: The ``WorkerContext/hash(appID:userID:)`` of a good token's person. A refused token proves no person.
    private func record(
        _ code: Rejection.Code?,
        _ problem: Rejection?,
        _ person: String?,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>
    ) {
        let subject = worker.subject
        if let subject {
            core.metrics.count(.verdict(subject, code))
            if let place, routes[place].dialect == .exchange { core.metrics.count(.exchange(code)) }
        }
        if let logger = core.auditLogger, let place, routes[place].isAudited {
            let facts = [
                "route": "\(routes[place].path)", "method": "\(exchange.head.method.name)",
                "outcome": code?.rawValue ?? "accepted", "user": person,
            ]
            logger.info("audit", metadata: metadata(facts, exchange.head, bytes))
        }
        if let code {
            // The log gives the operator the reason of a refused callback: Facebook shows the answer to no person.
            let reason = code == .invalidSignedRequest ? problem?.detail : nil
            noteRefusal(code, reason: reason, &exchange, bytes)
        }
        guard core.logger.logLevel <= .debug else { return }
        var facts = ["code": code?.rawValue, "claim": problem?.claim, "fbtrace_id": problem?.context.traceID]
        for (name, text) in problem?.context.logged ?? [:] { facts[name] = text }
        let message: Logger.Message =
            subject == nil
            ? (code == nil ? "request answered" : "request refused")
            : (code == nil ? "verification accepted" : "verification refused")
        core.logger.debug(message, metadata: metadata(facts, exchange.head, bytes))
    }

    /// Logs a refusal at level info. No line names a person.
    private func noteRefusal(
        _ code: Rejection.Code,
        reason: String? = nil,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>
    ) {
        guard core.logger.logLevel <= .info else { return }
        reportUntold(exchange.context.now)
        guard refusals.admits(at: exchange.context.now) else { return }
        let caller = worker.callerName(exchange.head, bytes)
        let route = place.map { "\(routes[$0].path)" }
        let facts = ["code": code.rawValue, "reason": reason, "route": route, "caller": caller]
        core.logger.info("refused", metadata: metadata(facts, exchange.head, bytes))
    }

    private func reportUntold(_ now: MonotonicInstant) {
        guard let count = refusals.takeUntold(at: now) else { return }
        core.logger.info("refusals without a line", metadata: ["count": "\(count)"])
    }

    private func metadata(
        _ facts: [String: String?],
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>
    ) -> Logger.Metadata {
        var metadata = facts.compactMapValues { $0.map { Logger.MetadataValue.string($0) } }
        metadata["request_id"] = "\(String(decoding: requestID, as: UTF8.self))"
        metadata["trace_id"] = TraceParent.traceID(head, bytes).map { "\($0)" }
        return metadata
    }
}

/// Limits the log lines about refusals: each client can send bad tokens, and a flood of them must not fill the log.
struct RefusalPace {
    /// 10 a second: enough to find a mistake by hand, and at most 1 GB a week for each worker.
    private static let linesPerSecond = 10

    private(set) var secondEnds = MonotonicInstant(nanoseconds: 0)
    private var lineCount = 0
    /// The number of refusals without a line that no line has reported yet.
    private(set) var untoldCount = 0

    mutating func admits(at now: MonotonicInstant) -> Bool {
        if now >= secondEnds { (secondEnds, lineCount) = (now + .seconds(1), 0) }
        guard lineCount < Self.linesPerSecond else {
            untoldCount += 1
            return false
        }
        lineCount += 1
        return true
    }

    /// - Returns: The number of refusals without a line in the second that is over; nil if there are none.
    mutating func takeUntold(at now: MonotonicInstant) -> Int? {
        guard untoldCount > 0, now >= secondEnds else { return nil }
        defer { untoldCount = 0 }
        return untoldCount
    }
}

/// A judged credential, or one of Facebook's callbacks: the outcome of a request is counted under it.
enum MetricSubject: Hashable {
    case idToken
    case accessToken
    case callback(CallbackKind)
}

/// The outcome of a request; the handler counts and logs it. A refusal is thrown.
enum Outcome {
    /// The request was carried out; the response says so. The person of a good token is named for the audit.
    case done(person: String? = nil)
    /// An id token was judged and is refused for this code; the response says so in its own way.
    case inactive(Rejection.Code)
    /// The request waits for its job until this time at the latest; without a job it begins anew when it is woken or
    /// the time comes.
    case later(until: MonotonicInstant)
}

/// The `X-Request-Id` of an answer: the caller's if it is well-formed, otherwise a new one.
///
/// A new identifier consists of the random number of the process, the connection's number and the request's position on
/// the connection. Every call for one request therefore computes the same identifier, without storing it.
package struct RequestIdentifier: Sendable {
    /// A random number that distinguishes this process's identifiers from those of another.
    private let process: UInt32

    package init(process: UInt32) { self.process = process }

    /// Replaces the text of `buffer` by the identifier of a request.
    package func write(_ exchange: inout HTTPExchange, bytes: Span<UInt8>, into buffer: inout [UInt8]) {
        buffer.removeAll(keepingCapacity: true)
        if let value = exchange.head.value(of: "x-request-id", in: bytes), Self.isWellFormed(bytes, value) {
            buffer.append(bytes, value)
            return
        }
        // Three numbers of at most 16 digits and two hyphens.
        let request = exchange.context.request
        buffer.append(addingCapacity: 50) { (output: inout OutputSpan<UInt8>) in
            output.append(hexadecimal: UInt64(process))
            output.append(UInt8(ascii: "-"))
            output.append(hexadecimal: request.connectionID)
            output.append(UInt8(ascii: "-"))
            output.append(hexadecimal: UInt64(truncatingIfNeeded: request.requestsBefore))
        }
    }

    /// True for 1 to 128 characters of `[A-Za-z0-9._-]`, safe in a log line, a header field and a JSON string.
    static func isWellFormed(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        (1...128).contains(range.count)
            && range.allSatisfy { ASCII.isAlphanumeric(bytes[$0]) || "._-".utf8.contains(bytes[$0]) }
    }
}

/// The caller's `traceparent` (W3C Trace Context, section 3.2): its trace id joins the log lines of several services.
enum TraceParent {
    static func traceID(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> String? {
        fields(head, bytes).map { String($0[1]) }
    }

    /// The `traceparent` of a call that the request causes, with the fields of version 00 (section 3.2.1).
    static func passedOn(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> String? {
        fields(head, bytes).map { "00-" + $0[1...3].joined(separator: "-") }
    }

    /// Nil if there is no `traceparent`, more than one, or none that is valid.
    private static func fields(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> [Substring]? {
        guard head.count(of: "traceparent", in: bytes) == 1, let value = head.value(of: "traceparent", in: bytes) else {
            return nil
        }
        return fields(of: String(decoding: value.map { bytes[$0] }, as: UTF8.self))
    }

    /// Version, trace id, parent id and flags, and the fields of a later version.
    static func fields(of text: String) -> [Substring]? {
        let fields = text.split(separator: "-", maxSplits: 4, omittingEmptySubsequences: false)
        guard fields.count >= 4, fields[..<4].map(\.utf8.count) == [2, 32, 16, 2],
            fields[..<4].joined().allSatisfy({ "0123456789abcdef".contains($0) }),
            fields[0] != "ff", fields[0] != "00" || fields.count == 4,
            fields[1...2].allSatisfy({ $0.contains { $0 != "0" } })
        else { return nil }
        return fields
    }
}
