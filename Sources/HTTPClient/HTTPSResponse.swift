internal import Bytes
internal import HTTP1

/// A whole response: status, fields in order, decoded body.
package struct HTTPSResponse: Sendable {
    package struct Field: Sendable, Equatable {
        /// Lower case.
        package let name: String
        package let value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package let status: Int
    package let fields: [Field]
    package let body: [UInt8]
    /// Why the body could not be read, for a caller that does not need it; then it is empty.
    package var bodyFault: HTTPSClientError?

    package init(status: Int, fields: [Field], body: [UInt8]) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// The value of a field that stands once; field lines that repeat are joined with commas (RFC 9110, 5.3).
    package func value(of name: String) -> String? {
        var joined: String?
        for field in fields where field.name == name {
            joined = joined.map { "\($0), \(field.value)" } ?? field.value
        }
        return joined
    }
}

extension BlockingStream {
    /// The whole response within the limits, however it is cut. A body that is not wanted is left unread; the fault of one
    /// that is not needed is told in the response.
    func readResponse(
        bodyOf wanted: (_ status: Int) -> Bool,
        needsBody: Bool
    ) throws(HTTPSClientError) -> HTTPSResponse {
        var received: [UInt8] = []
        let head = try readHead(into: &received, answersConnect: false)
        let fields = head.fields.map { field in
            HTTPSResponse.Field(
                name: String(decoding: received[field.name].map(ASCII.lowercased), as: UTF8.self),
                value: String(decoding: received[field.value], as: UTF8.self)
            )
        }
        guard wanted(head.status) else { return HTTPSResponse(status: head.status, fields: fields, body: []) }
        do throws(HTTPSClientError) {
            // RFC 9110, 8.4: no coding was offered, so every coding is refused. 8.4.1: its case does not matter.
            if fields.contains(where: { $0.name == "content-encoding" && $0.value.lowercased() != "identity" }) {
                throw .malformedResponse(reason: "the body is encoded, although no coding was offered")
            }
            let body = try readBody(head.framing, begun: received[head.byteCount...])
            return HTTPSResponse(status: head.status, fields: fields, body: body)
        } catch {
            guard !needsBody else { throw error }
            var response = HTTPSResponse(status: head.status, fields: fields, body: [])
            response.bodyFault = error
            return response
        }
    }

    /// The status of a proxy's answer to CONNECT; nothing may follow it, for a TLS server never speaks first.
    func readTunnelAnswer() throws(HTTPSClientError) -> Int {
        var received: [UInt8] = []
        let head = try readHead(into: &received, answersConnect: true)
        if (200..<300).contains(head.status), received.count > head.byteCount {
            throw .proxyFailed(reason: "it sent bytes that nobody asked for")
        }
        return head.status
    }

    private func readHead(
        into received: inout [UInt8],
        answersConnect: Bool
    ) throws(HTTPSClientError) -> ResponseHead {
        var parser = ResponseParser(
            headLimit: limits.headBytes,
            fieldLimit: limits.fieldCount,
            answersConnect: answersConnect
        )
        var buffer = [UInt8](repeating: 0, count: 8192)
        while true {
            switch parser.parse(received.span) {
            case .complete(let head): return head
            case .needMore: break
            case .reject(.headTooLarge): throw .headTooLarge(limit: limits.headBytes)
            case .reject(let refusal): throw .malformedResponse(reason: refusal.rawValue)
            }
            let count = try read(into: &buffer)
            guard count > 0 else { throw .connectionClosed }
            received.append(contentsOf: buffer[..<count])
        }
    }

    private func readBody(
        _ framing: ResponseHead.Framing,
        begun: ArraySlice<UInt8>
    ) throws(HTTPSClientError) -> [UInt8] {
        let limit = limits.bodyBytes
        var length = Int.max
        if case .length(let declared) = framing { length = declared }
        // Refused before it is read.
        guard length == .max || length <= limit else { throw .bodyTooLarge(limit: limit) }
        var decoder = ChunkedDecoder(limits: HTTPLimits(), bodyLimit: limit)
        var body: [UInt8] = []
        var piece = Array(begun)
        var count = piece.count
        while true {
            if framing == .chunked {
                if try decode(piece.span.extracting(0..<count), by: &decoder, into: &body) { return body }
            } else {
                count = min(count, length - body.count)
                guard count <= limit - body.count else { throw .bodyTooLarge(limit: limit) }
                body.append(piece.span, 0..<count)
                if body.count == length { return body }
            }
            if piece.count < 16_384 { piece = [UInt8](repeating: 0, count: 16_384) }
            count = try read(into: &piece)
            if count == 0 {
                // Right for a body that ends with the stream, too early for every other (RFC 9112, 8).
                guard framing == .untilClose else { throw .connectionClosed }
                return body
            }
        }
    }

    /// - Returns: Whether the body is whole.
    private func decode(
        _ bytes: Span<UInt8>,
        by decoder: inout ChunkedDecoder,
        into body: inout [UInt8]
    ) throws(HTTPSClientError) -> Bool {
        var position = 0
        do throws(RequestRefusal) {
            while true {
                switch try decoder.next(in: bytes, from: &position) {
                case .data(let range): body.append(bytes, range)
                case .needMore: return false
                case .complete: return true
                }
            }
        } catch {
            if error == .bodyTooLarge { throw .bodyTooLarge(limit: limits.bodyBytes) }
            throw .malformedResponse(reason: error.rawValue)
        }
    }
}
