internal import CLLDocuments
internal import Dispatch
internal import LLBytes
internal import LLHTTP
internal import LLService
internal import LLStandIn
internal import LimitedLogin

/// The backend of the page: the demonstration, or the verdict on a pasted token.
protocol PageBackend: Sendable {
    /// The page's content before its first request.
    func state() -> JSON
    /// Answers a request of the page; may block.
    func run(_ body: [UInt8]) throws(PageRefusal) -> JSON
}

/// The reason why a request of the page is refused: one sentence for its user.
struct PageRefusal: Error {
    let sentence: String
}

/// Serves the page, and answers its script. The work runs on a queue of its own while the request is parked.
final class PageHandler: HTTPRequestHandler {
    /// The longest body: a token of 32 KiB, and half of that for its other members. The listener reads no more.
    private static let bodyByteLimit = 49_152
    /// The longest wait: several requests to the service, each of which may wait for a fetch of its keys.
    private static let patience = Duration.seconds(15)
    /// The greatest number of waiting requests: 16, since one person has few pages open.
    private static let waitingLimit = 16

    /// The embedded files, by path; each is a constant of the program that ends with a zero byte.
    private static let files: [String: (mediaType: String, content: [UInt8])] = unsafe [
        "/": ("text/html; charset=utf-8", Array(String(cString: page_html()).utf8)),
        "/page.css": ("text/css; charset=utf-8", Array(String(cString: page_style()).utf8)),
        "/page.js": ("text/javascript; charset=utf-8", Array(String(cString: page_script()).utf8)),
        "/API.md": ("text/plain; charset=utf-8", Array(String(cString: page_documentation()).utf8)),
        "/llms.txt": ("text/plain; charset=utf-8", Array(String(cString: page_agents()).utf8)),
        "/icon.svg": ("image/svg+xml", Array(String(cString: page_icon()).utf8)),
    ]

    private let backend: any PageBackend
    private let behind: (any HTTPRequestHandler)?
    private let jobs = BackgroundJobs<Void, Result<JSON, PageRefusal>>(capacity: waitingLimit)
    private let queue = DispatchQueue(label: "page")

    /// - Parameter behind: Answers all other paths; nil if there are none.
    init(backend: any PageBackend, behind: (any HTTPRequestHandler)? = nil) {
        self.backend = backend
        self.behind = behind
    }

    func attach(_ waker: @escaping RequestWaker) {
        jobs.attach(waker)
        behind?.attach(waker)
    }

    func didAbandon(_ request: ParkedRequest) {
        jobs.abandon(request)
        behind?.didAbandon(request)
    }

    func receiveHead(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> HeadDecision {
        if let refusal = SameOrigin.refusal(of: exchange.head, bytes) {
            return refuse(refusal.status, refusal.sentence, &exchange.response)
        }
        let path = bytes.text(exchange.head.path)
        let isRun = path == "/run"
        let file = Self.files[path]
        guard isRun || path == "/state" || file != nil else {
            return behind?.receiveHead(&exchange, bytes: bytes)
                ?? refuse(404, "There is nothing here; the page is at /.", &exchange.response)
        }
        let method = exchange.head.method
        guard isRun ? method == .post : method == .get || method == .head else {
            exchange.response.addField(isRun ? "Allow: POST" : "Allow: GET, HEAD")
            return refuse(405, "This path takes another method.", &exchange.response)
        }
        if isRun {
            // Only a script can send this type, and only one of this origin: other origins need a preflight.
            let type = exchange.head.value(of: "content-type", in: bytes)
            guard let type, MediaType.isJSON(bytes, type) else {
                return refuse(415, "The body must be application/json.", &exchange.response)
            }
            return .readBody(atMost: Self.bodyByteLimit)
        }
        if let file {
            exchange.response.addField("Content-Type", file.mediaType)
            exchange.response.share(file.content)
        } else {
            exchange.response.addField("Content-Type: application/json")
            exchange.response.body = backend.state().bytes
        }
        protect(&exchange.response)
        return .respond
    }

    func receiveRequest(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> RequestDecision {
        guard bytes.equal(exchange.head.path, "/run") else {
            return behind?.receiveRequest(&exchange, bytes: bytes) ?? .respond
        }
        switch jobs.visit(exchange.context) {
        case .none:
            let deadline = exchange.context.now + Self.patience
            let text = exchange.body.map { bytes[$0] }
            let isBegun = jobs.begin(exchange.context, keeping: (), until: deadline) { request in
                queue.async { [jobs, backend] in
                    let outcome = Result { () throws(PageRefusal) in try backend.run(text) }
                    jobs.finish(request, outcome, now: MonotonicClock.now())
                }
                return true
            }
            guard isBegun else {
                _ = refuse(503, "Too much is asked at once; try again.", &exchange.response)
                return .respond
            }
            return .park(until: deadline)
        case .waiting(let deadline): return .park(until: deadline)
        case .expired: _ = refuse(503, "This took longer than 15 s; try again.", &exchange.response)
        case .done(_, .failure(let refusal)): _ = refuse(400, refusal.sentence, &exchange.response)
        case .done(_, .success(let json)):
            exchange.response.addField("Content-Type: application/json")
            exchange.response.body = json.bytes
            protect(&exchange.response)
        }
        return .respond
    }

    private func refuse(_ status: UInt16, _ sentence: String, _ response: inout HTTPResponse) -> HeadDecision {
        response.status = status
        response.addField("Content-Type: text/plain; charset=utf-8")
        protect(&response)
        response.body.append(contentsOf: "\(sentence)\n".utf8)
        return .respond
    }

    /// Allows only content of this origin: no inline script or style, no frame around the page, no request elsewhere.
    private func protect(_ response: inout HTTPResponse) {
        response.addField(
            """
            Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
            connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; \
            require-trusted-types-for 'script'
            """
        )
        response.addField("X-Content-Type-Options: nosniff")
        response.addField("Referrer-Policy: no-referrer")
        response.addField("Cross-Origin-Resource-Policy: same-origin")
        response.addField("Cross-Origin-Opener-Policy: same-origin")
        response.addField("Cache-Control: no-store")
    }
}

extension PageBackend {
    /// The content of the page after a request. The report is nil if no check was made, and the note tells the meaning of
    /// an accepted credential if it is no new login.
    func outcome(
        token: String,
        report: CheckReport?,
        answer: HTTPSResponse? = nil,
        note: String,
        command: String,
        asked: String = "POST /verify",
        request: JSON? = nil,
        steps: [JSON] = []
    ) -> JSON {
        // The body stays text, so that the page shows the sent bytes, not the parsed values.
        let text = String(decoding: answer?.body ?? [], as: UTF8.self)
        return [
            "state": state(), "report": report?.json,
            "checks": report.map { report in Self.checks(report.rows.map { ($0.check, $0.title) }) } ?? Self.checks(),
            "status": JSON(answer.map { "\($0.status)" }), "answer": text.isEmpty ? nil : JSON(text),
            "token": JSON(token), "note": JSON(note), "command": JSON(command),
            "asked": JSON(asked), "request": request, "steps": JSON(steps),
        ]
    }

    /// The keys by the beginnings of their names, for a sentence.
    static func names(of keys: [String]) -> String {
        let names = keys.map { "“\($0.prefix(6))…”" }
        guard let last = names.last else { return "no key" }
        return names.count == 1
            ? "the key named \(last)" : "the keys named \(names.dropLast().joined(separator: ", ")) and \(last)"
    }

    /// Checks by name and title, in their order; those of an id token by default.
    static func checks(
        _ titles: [(check: String, title: String)] = VerificationCheck.allCases.map { ("\($0)", $0.title) }
    ) -> JSON {
        JSON(titles.map { ["check": JSON($0.check), "title": JSON($0.title)] })
    }
}

/// Keeps pages of other origins away from a listener that only this machine reaches.
///
/// With DNS rebinding, a page on the internet makes its own name resolve to 127.0.0.1; its requests then carry that
/// name in `Host`. A page's request to another origin carries the page's origin in `Origin` (Fetch section 3.2).
enum SameOrigin {
    typealias Refusal = (status: UInt16, sentence: String)

    /// The reason to refuse the request; nil if it may come from this machine's own page, or from no page.
    static func refusal(of head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Refusal? {
        if let refusal = hostRefusal(head, bytes, []) { return refusal }
        let own = head.authority.map { "http://\(bytes.text($0))" }
        let origin = head.value(of: "origin", in: bytes).map { bytes.text($0) }
        let isOwn = head.count(of: "origin", in: bytes) <= 1 && (origin == nil || origin == own)
        return isOwn ? nil : (403, "Another page may not use this one.")
    }

    /// Refuses a request for another host. A listener on all addresses of a container then serves only the machine on
    /// which the container's ports are published, and containers that know it by one of these names.
    static func refusesHost(_ exchange: inout HTTPExchange, _ bytes: Span<UInt8>, but names: [String] = []) -> Bool {
        guard let refusal = hostRefusal(exchange.head, bytes, names) else { return false }
        exchange.response.status = refusal.status
        exchange.response.addField("Content-Type: text/plain; charset=utf-8")
        exchange.response.body.append(contentsOf: "\(refusal.sentence)\n".utf8)
        return true
    }

    /// Nil if the request's host is this machine or one of these names.
    private static func hostRefusal(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ names: [String]) -> Refusal?
    {
        if let range = head.authority, head.count(of: "host", in: bytes) <= 1 {
            let authority = bytes.text(range)
            if isLoopback(authority) || names.contains(authority.prefix { $0 != ":" }.lowercased()) { return nil }
        }
        let list = (names + ["127.0.0.1, [::1] and localhost"]).joined(separator: ", ")
        return (421, "This is served for \(list) alone; open it by one of these names.")
    }

    /// True if the text is a loopback address or `localhost`, with or without a port. Any port is accepted: a tunnel
    /// has another one, and a page of another port has another origin.
    private static func isLoopback(_ authority: String) -> Bool {
        if let address = SocketAddress(authority) ?? SocketAddress("\(authority):80") { return address.isLoopback }
        let parts = authority.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        return parts.first == "localhost" && (parts.count == 1 || UInt16(parts[1]) != nil)
    }
}
