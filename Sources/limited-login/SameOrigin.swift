internal import LLBytes
internal import LLHTTP
internal import LLStandIn

/// Keeps pages of other origins away from a listener that only this machine reaches.
///
/// With DNS rebinding, a page on the internet makes its own name resolve to 127.0.0.1; its requests then carry that
/// name in `Host`. A page's request to another origin carries the page's origin in `Origin` (Fetch section 3.2).
enum SameOrigin {
    typealias Refusal = (status: UInt16, sentence: String)

    /// The reason to refuse the request; nil if it may come from this machine's own page, or from no page.
    static func refusal(of head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Refusal? {
        if let refusal = hostRefusal(of: head, bytes, []) { return refusal }
        let own = head.authority.map { "http://\(bytes.text($0))" }
        let origin = head.value(of: "origin", in: bytes).map { bytes.text($0) }
        let isOwn = head.count(of: "origin", in: bytes) <= 1 && (origin == nil || origin == own)
        return isOwn ? nil : (403, "Another page may not use this one.")
    }

    /// Refuses a request for another host. A listener on all addresses of a container then serves only the machine on
    /// which the container's ports are published, and containers that know it by one of these names.
    static func refusesHost(_ exchange: inout HTTPExchange, _ bytes: Span<UInt8>, but names: [String] = []) -> Bool {
        guard let refusal = hostRefusal(of: exchange.head, bytes, names) else { return false }
        exchange.response.status = refusal.status
        exchange.response.addField("Content-Type: text/plain; charset=utf-8")
        exchange.response.body.append(contentsOf: "\(refusal.sentence)\n".utf8)
        return true
    }

    /// Nil if the request's host is this machine or one of these names.
    private static func hostRefusal(
        of head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ names: [String]
    ) -> Refusal? {
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
