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
        guard let authority = ownHost(of: head, bytes, []) else { return unknownHost([]) }
        guard head.count(of: "origin", in: bytes) <= 1 else { return foreignOrigin }
        if let origin = head.value(of: "origin", in: bytes), bytes.text(origin) != "http://\(authority)" {
            return foreignOrigin
        }
        return nil
    }

    /// The request's own host, if it is this machine's or one of these; else nil.
    private static func ownHost(of head: borrowing RequestHead, _ bytes: Span<UInt8>, _ names: [String]) -> String? {
        guard let range = head.authority, head.count(of: "host", in: bytes) <= 1 else { return nil }
        let authority = bytes.text(range)
        let host = authority.prefix { $0 != ":" }
        return isLoopback(authority) || names.contains(host.lowercased()) ? authority : nil
    }

    /// Refuses a request for another host. A listener on all addresses of a container then serves only the machine on
    /// which the container's ports are published, and containers that know it by one of these names.
    static func refusesHost(_ exchange: inout HTTPExchange, _ bytes: Span<UInt8>, but names: [String] = []) -> Bool {
        guard ownHost(of: exchange.head, bytes, names) == nil else { return false }
        let (status, sentence) = unknownHost(names)
        exchange.response.status = status
        exchange.response.addField("Content-Type: text/plain; charset=utf-8")
        exchange.response.body.append(contentsOf: "\(sentence)\n".utf8)
        return true
    }

    private static func unknownHost(_ names: [String]) -> (status: UInt16, sentence: String) {
        let list = (names + ["127.0.0.1, [::1] and localhost"]).joined(separator: ", ")
        return (421, "This is served for \(list) alone; open it by one of these names.")
    }
    private static let foreignOrigin: (UInt16, String) = (403, "Another page may not use this one.")

    /// True if the text is a loopback address or `localhost`, with or without a port. Any port is accepted: a tunnel
    /// has another one, and a page of another port has another origin.
    private static func isLoopback(_ authority: String) -> Bool {
        if let address = SocketAddress(authority) ?? SocketAddress("\(authority):80") { return address.isLoopback }
        let parts = authority.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        return parts.first == "localhost" && (parts.count == 1 || UInt16(parts[1]) != nil)
    }
}
