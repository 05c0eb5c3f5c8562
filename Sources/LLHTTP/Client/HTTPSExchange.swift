internal import LLBytes

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
}

extension HTTPSExchange {
    /// Reads the whole response within the limits, in any pieces. An unwanted body is left unread. A fault of a body
    /// that is not needed is reported in the response.
    func readResponse(bodyOf wanted: (_ status: Int) -> Bool, needsBody: Bool) throws(ClientError) -> HTTPSResponse {
        var received: [UInt8] = []
        let head = try readHead(into: &received, answersConnect: false)
        let fields = head.fields.map { field in
            (
                name: String(decoding: received[field.name].map(ASCII.lowercased), as: UTF8.self),
                value: String(decoding: received[field.value], as: UTF8.self)
            )
        }
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
        let (bytes, fields) = (HTTPSClientLimits.headBytes, HTTPSClientLimits.fieldCount)
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
        var length = Int.max
        if case .length(let declared) = framing { length = declared }
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
