internal import LLBytes
internal import LLHTTP
internal import LLStandIn

/// Keeps pages of other origins away from a listener that only this machine reaches.
///
/// With DNS rebinding, a page on the internet makes its own name resolve to 127.0.0.1; its requests then carry that
/// name in `Host`. A page's request to another origin carries the page's origin in `Origin` (Fetch section 3.2).
enum SameOrigin {
    /// The reason to refuse the request; nil if it may come from this machine's own page, or from no page.
    static func refusal(of head: borrowing RequestHead, _ bytes: Span<UInt8>) -> (status: UInt16, sentence: String)? {
        guard let authority = loopbackHost(of: head, bytes) else { return unknownHost }
        guard head.count(of: "origin", in: bytes) <= 1 else { return foreignOrigin }
        if let origin = head.value(of: "origin", in: bytes), bytes.text(origin) != "http://\(authority)" {
            return foreignOrigin
        }
        return nil
    }

    /// The request's own host, if it is this machine's; else nil.
    static func loopbackHost(of head: borrowing RequestHead, _ bytes: Span<UInt8>) -> String? {
        guard let range = head.authority, head.count(of: "host", in: bytes) <= 1 else { return nil }
        let authority = bytes.text(range)
        return isLoopback(authority) ? authority : nil
    }

    static let unknownHost: (status: UInt16, sentence: String) = (
        421, "This is served for 127.0.0.1, [::1] and localhost alone; open it by one of these names."
    )
    private static let foreignOrigin: (UInt16, String) = (403, "Another page may not use this one.")

    /// True if the text is a loopback address or `localhost`, with or without a port. Any port is accepted: a tunnel
    /// has another one, and a page of another port has another origin.
    private static func isLoopback(_ authority: String) -> Bool {
        if let address = SocketAddress(authority) ?? SocketAddress("\(authority):80") { return address.isLoopback }
        let parts = authority.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        return parts.first == "localhost" && (parts.count == 1 || UInt16(parts[1]) != nil)
    }
}

/// Makes a handler answer only requests for a loopback host. A listener on all addresses of a container serves only the
/// machine on which the container's ports are published.
final class LoopbackHostHandler: HTTPRequestHandler {
    private let inner: any HTTPRequestHandler

    init(_ inner: any HTTPRequestHandler) { self.inner = inner }

    func attach(_ waker: RequestWaker) { inner.attach(waker) }

    func receiveHead(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> HeadDecision {
        guard SameOrigin.loopbackHost(of: exchange.head, bytes) != nil else {
            exchange.response.status = SameOrigin.unknownHost.status
            exchange.response.addField("Content-Type: text/plain; charset=utf-8")
            exchange.response.body.append(contentsOf: "\(SameOrigin.unknownHost.sentence)\n".utf8)
            return .respond
        }
        return inner.receiveHead(&exchange, bytes: bytes)
    }

    func receiveRequest(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> RequestDecision {
        inner.receiveRequest(&exchange, bytes: bytes)
    }

    func renderFailure(_ failure: HTTPFailure, _ exchange: inout HTTPExchange, bytes: Span<UInt8>) {
        inner.renderFailure(failure, &exchange, bytes: bytes)
    }

    func isExemptFromOverload(_ head: borrowing RequestHead, bytes: Span<UInt8>) -> Bool {
        inner.isExemptFromOverload(head, bytes: bytes)
    }

    func didRespond(status: UInt16, context: RequestContext) { inner.didRespond(status: status, context: context) }

    func didAbandon(_ request: ParkedRequest) { inner.didAbandon(request) }

    func willWait(at now: MonotonicInstant) -> MonotonicInstant { inner.willWait(at: now) }
}
