internal import LLBytes

/// An HTTPS client. Each request blocks its thread, has a connection of its own, and is bounded in time and size against
/// any peer. Concurrent connections share the trust store, which takes about 10 ms to read. It is read again after 60 s,
/// so that a renewed authority is noticed, and freed with the last of them.
package final class HTTPSClient: Sendable {
    private let trust: TLSContext.Trust
    private let shared = Locked(SharedContext())
    let proxy: ProxySettings
    let names: NameResolver
    let cancellation = WakeSignal()

    /// Verification itself cannot be turned off. Plain `http` to loopback never goes through a proxy.
    package init(
        trust: TLSContext.Trust = .system,
        proxy: ProxySettings = .none,
        names: NameResolver = NameResolver()
    ) {
        self.trust = trust
        self.proxy = proxy
        self.names = names
    }

    /// Fetches a URL and follows redirects within the same host. Only the body of a 2xx response is read.
    package func get(
        _ url: HTTPURL,
        headers: [HTTPSResponse.Field] = [],
        limits: HTTPSClientLimits = .init()
    ) throws(ClientError) -> HTTPSResponse {
        let deadline = MonotonicClock.now() + limits.fetchTimeout
        var url = url
        for _ in 0...HTTPSClientLimits.redirectCount {
            let request = HTTPSRequest(.get, url, headers: headers)
            let response = try send(request, limits: limits, until: deadline, bodyOf: { (200..<300).contains($0) })
            // RFC 9110, 15.4: only these redirects name another location of the same resource.
            guard [301, 302, 303, 307, 308].contains(response.status) else { return response }
            guard let location = response.value(of: "location") else {
                throw .redirectRefused(reason: "it names no place")
            }
            url = try url.redirected(to: location)
        }
        throw .redirectRefused(reason: "there are more than \(HTTPSClientLimits.redirectCount) in a row")
    }

    /// Sends one request once. Redirects are not followed.
    /// - Parameters:
    ///   - deadline: The latest end of the call; ``HTTPSClientLimits/fetchTimeout`` bounds it too.
    ///   - needsBody: False if the status is enough: a fault of the body is then reported in
    ///     ``HTTPSResponse/bodyFault``.
    ///   - sent: Called once the whole request is sent. After a later error the server may have acted on the request.
    ///   - wanted: Whether to read the body of a response with this status.
    package func send(
        _ request: HTTPSRequest,
        limits: HTTPSClientLimits = .init(),
        until deadline: MonotonicInstant = .never,
        needsBody: Bool = true,
        sent: () -> Void = {},
        bodyOf wanted: (_ status: Int) -> Bool = { _ in true }
    ) throws(ClientError) -> HTTPSResponse {
        let deadline = min(deadline, MonotonicClock.now() + limits.fetchTimeout)
        let bytes = try request.encoded()
        let exchange = try HTTPSExchange(with: request.url, client: self, limits, deadline: deadline)
        try exchange.write(bytes, .sending)
        sent()
        let response = try exchange.readResponse(bodyOf: wanted, needsBody: needsBody)
        exchange.stream.close()
        return response
    }

    private struct SharedContext {
        weak var context: TLSContext?
        var isOldAt = MonotonicInstant(nanoseconds: 0)
    }

    func context() throws(ClientError) -> TLSContext {
        do throws(TLSError) {
            // Other connections wait meanwhile, because they need the context too.
            return try shared.withLock { shared throws(TLSError) in
                let now = MonotonicClock.now()
                if let context = shared.context, now < shared.isOldAt { return context }
                let context = try TLSContext(clientTrusting: trust)
                shared = SharedContext(context: context, isOldAt: now + .seconds(60))
                return context
            }
        } catch {
            throw .tls(reason: error.description)
        }
    }

    /// Waits until the moment. Cancelling the client ends the wait at once.
    package func pause(until moment: MonotonicInstant) throws(ClientError) {
        if BlockingWait.wait(for: [], or: cancellation, until: moment) == .signal { throw .cancelled }
    }

    /// Ends the running request and every later one at once, from any thread.
    package func cancel() { cancellation.set() }
}

/// Every limit of the HTTPS client, with its default and reason.
package struct HTTPSClientLimits: Sendable, Equatable {
    package var connectTime = ClientStream.connectTime
    /// The duration of the whole fetch, including name look-ups, redirects and body. 10 s.
    package var fetchTimeout: Duration = .seconds(10)
    /// Bytes of a decoded body. 64 KiB: Facebook's two keys take 1 KiB.
    package var bodyBytes = 65_536
    /// Redirects followed, all within the same host. 3.
    static let redirectCount = 3

    package init() {}
}

/// One request and its response over a connection of their own. The deadline and a cancellation bound every wait.
struct HTTPSExchange {
    let stream: ClientStream
    let client: HTTPSClient
    let bodyLimit: Int
    let deadline: MonotonicInstant

    /// Connects to the host of a URL, through the proxy if one is set for it.
    init(
        with url: HTTPURL,
        client: HTTPSClient,
        _ limits: HTTPSClientLimits,
        deadline: MonotonicInstant
    ) throws(ClientError) {
        let proxy = client.proxy.server(for: url)
        do throws(ClientError) {
            stream = try ClientStream.open(
                proxy?.host ?? url.host,
                port: proxy?.port ?? url.port,
                names: client.names,
                connectTime: limits.connectTime,
                cancelledBy: client.cancellation,
                until: deadline
            )
        } catch {
            if proxy != nil, case .connectFailed(let reason) = error { throw .proxyFailed(reason: reason) }
            throw error
        }
        self.client = client
        bodyLimit = limits.bodyBytes
        self.deadline = deadline
        if let proxy { try openTunnel(to: url, authorization: proxy.authorization) }
        if url.scheme == .https {
            try stream.secure(client.context(), hostName: url.host, cancelledBy: client.cancellation, until: deadline)
        }
    }

    /// RFC 9110, 9.3.6: asks the proxy for a tunnel. TLS runs inside it, so the proxy sees only the host's name.
    private func openTunnel(to url: HTTPURL, authorization: String?) throws(ClientError) {
        // The target of CONNECT always includes the port, unlike `Host`.
        let place = "\(url.bracketedHost):\(url.port)"
        var lines = ["CONNECT \(place) HTTP/1.1", "Host: \(place)"]
        if let authorization { lines.append("Proxy-Authorization: \(authorization)") }
        try write(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8), .connecting)
        var received: [UInt8] = []
        let head = try readHead(into: &received, answersConnect: true)
        guard (200..<300).contains(head.status) else { throw .proxyFailed(reason: "it answered \(head.status)") }
        // A TLS server never sends first.
        guard received.count == head.byteCount else {
            throw .proxyFailed(reason: "it sent bytes before the TLS handshake")
        }
    }

    func write(_ bytes: [UInt8], _ phase: ClientError.Phase) throws(ClientError) {
        var sent = 0
        while sent < bytes.count {
            if case .bytes(let count) = try stream.send(bytes, from: sent) {
                sent += count
            } else {
                try stream.wait(phase, cancelledBy: client.cancellation, until: deadline)
            }
        }
    }

    /// Reads the next bytes, at least one. Returns 0 at the end of the stream; under TLS the peer must have announced
    /// the end.
    func read(into buffer: inout [UInt8]) throws(ClientError) -> Int {
        while true {
            // The deadline is checked before each read: a peer that always has a byte ready would never cause a wait.
            guard MonotonicClock.now() < deadline else { throw .timedOut(phase: .receiving) }
            switch try stream.receive(into: &buffer) {
            case .bytes(let count): return count
            case .closed: return 0
            default: try stream.wait(.receiving, cancelledBy: client.cancellation, until: deadline)
            }
        }
    }

    /// Reads the whole response within the limits, in any pieces. An unwanted body is left unread. A fault of a body
    /// that is not needed is reported in the response.
    func readResponse(bodyOf wanted: (_ status: Int) -> Bool, needsBody: Bool) throws(ClientError) -> HTTPSResponse {
        var received: [UInt8] = []
        let head = try readHead(into: &received, answersConnect: false)
        func text(_ range: Range<Int>) -> String { String(decoding: received[range], as: UTF8.self) }
        let fields = head.fields.map { (name: text($0.name).lowercased(), value: text($0.value)) }
        var response = HTTPSResponse(status: head.status, fields: fields)
        guard wanted(head.status) else { return response }
        do throws(ClientError) {
            // RFC 9110, 8.4: the request offered no coding, so every coding is refused. 8.4.1: the case of a coding
            // does not matter.
            if fields.contains(where: { $0.name == "content-encoding" && $0.value.lowercased() != "identity" }) {
                throw .malformedResponse(reason: "the body is encoded, although no coding was offered")
            }
            response.body = try readBody(head.framing, begun: received[head.byteCount...])
        } catch {
            guard !needsBody else { throw error }
            response.bodyFault = error
        }
        return response
    }

    private func readHead(into received: inout [UInt8], answersConnect: Bool) throws(ClientError) -> ResponseHead {
        // The server's own limits; the bytes include the status line.
        let (bytes, fields) = (HTTPLimits().headerSectionBytes, HTTPLimits().fieldCount)
        var parser = ResponseParser(headLimit: bytes, fieldLimit: fields, answersConnect: answersConnect)
        var buffer = [UInt8](repeating: 0, count: 8192)
        while true {
            do throws(HTTPRefusal) {
                if let head = try parser.parse(received.span) { return head }
            } catch {
                if error == .headerSectionTooLarge { throw .headTooLarge(limit: bytes) }
                throw .malformedResponse(reason: error.clause)
            }
            let count = try read(into: &buffer)
            guard count > 0 else { throw .closed }
            received.append(contentsOf: buffer[..<count])
        }
    }

    private func readBody(_ framing: BodyFraming, begun: ArraySlice<UInt8>) throws(ClientError) -> [UInt8] {
        let length = if case .length(let declared) = framing { declared } else { Int.max }
        // A body with too great a declared length is refused before it is read.
        guard length == .max || length <= bodyLimit else { throw .bodyTooLarge(limit: bodyLimit) }
        var decoder = ChunkedDecoder(limits: HTTPLimits(), bodyLimit: bodyLimit)
        var body: [UInt8] = []
        var piece = Array(begun)
        var count = piece.count
        while true {
            if framing == .chunked {
                if try decode(piece.span.extracting(0..<count), by: &decoder, into: &body) { return body }
            } else {
                count = min(count, length - body.count)
                guard count <= bodyLimit - body.count else { throw .bodyTooLarge(limit: bodyLimit) }
                body.append(piece.span, 0..<count)
                if body.count == length { return body }
            }
            if piece.count < 16_384 { piece = [UInt8](repeating: 0, count: 16_384) }
            count = try read(into: &piece)
            if count == 0 {
                // The end of the stream completes only a body without a declared length (RFC 9112, 8).
                guard framing == .undeclared else { throw .closed }
                return body
            }
        }
    }

    private func decode(
        _ bytes: Span<UInt8>,
        by decoder: inout ChunkedDecoder,
        into body: inout [UInt8]
    ) throws(ClientError) -> Bool {
        var position = 0
        do throws(HTTPRefusal) {
            while true {
                switch try decoder.next(in: bytes, from: &position) {
                case .data(let range): body.append(bytes, range)
                case .needMore: return false
                case .complete: return true
                }
            }
        } catch {
            if error == .bodyTooLarge { throw .bodyTooLarge(limit: bodyLimit) }
            throw .malformedResponse(reason: error.clause)
        }
    }
}

package struct HTTPSRequest: Sendable {
    package struct Body: Sendable, Equatable {
        package let mediaType: String
        package let bytes: [UInt8]

        package static func json(_ bytes: [UInt8]) -> Body {
            Body(mediaType: "application/json", bytes: bytes)
        }

        package static func form(_ parameters: [(name: String, value: String)]) -> Body {
            Body(mediaType: "application/x-www-form-urlencoded", bytes: Array(FormParameters.encode(parameters).utf8))
        }
    }

    package let method: HTTPMethod
    package let url: HTTPURL
    package let headers: [HTTPSResponse.Field]
    package let body: Body?

    package init(_ method: HTTPMethod, _ url: HTTPURL, headers: [HTTPSResponse.Field] = [], body: Body? = nil) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }

    /// The bytes of the request. A field that could split the request is refused (RFC 9110, 5.5).
    func encoded() throws(ClientError) -> [UInt8] {
        var lines = [
            "\(method.name) \(url.target) HTTP/1.1",
            "Host: \(url.authority)",
            "User-Agent: limited-login",
            "Accept: */*",
            "Accept-Encoding: identity",
            "Connection: close",
        ]
        if let body { lines.append("Content-Type: \(body.mediaType)") }
        // RFC 9110, 8.6: a method that expects content sends `Content-Length: 0` for an empty body.
        if body != nil || method == .post { lines.append("Content-Length: \(body?.bytes.count ?? 0)") }
        let trace = CallTrace.parent.map { [(name: "traceparent", value: $0)] }
        for field in headers + (trace ?? []) {
            guard !field.name.isEmpty, field.name.utf8.allSatisfy(FieldGrammar.isTokenByte),
                field.value.utf8.allSatisfy(FieldGrammar.isValueByte)
            else { throw .malformedRequest }
            lines.append("\(field.name): \(field.value)")
        }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + (body?.bytes ?? [])
    }
}

/// A whole response: status, fields in order, decoded body.
package struct HTTPSResponse: Sendable {
    /// A field line; a received field's name is in lower case.
    package typealias Field = (name: String, value: String)

    package let status: Int
    package let fields: [Field]
    package var body: [UInt8] = []
    /// Why the body could not be read. It is set only for a caller that does not need the body, and the body is then
    /// empty.
    package internal(set) var bodyFault: ClientError?

    /// The value of a field; repeated field lines are joined with commas (RFC 9110, 5.3).
    package func value(of name: String) -> String? {
        let values = fields.filter { $0.name == name }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }
}
