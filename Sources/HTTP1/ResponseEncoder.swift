/// Writes responses, head and content in one buffer, with the `Date` line kept from second to second.
package struct ResponseEncoder: ~Copyable {
    private var dateLine: [UInt8] = []
    private var dateSecond = Int64.min

    package init() {}

    /// What the encoder must know besides the response.
    package struct Context: Sendable {
        /// The request's method; HEAD is answered without content.
        package var method: HTTPMethod
        /// The request's minor version: an HTTP/1.0 client is told where the connection persists.
        package var minorVersion: UInt8
        /// True where the connection serves further requests.
        package var keepAlive: Bool

        package init(method: HTTPMethod, minorVersion: UInt8, keepAlive: Bool) {
            self.method = method
            self.minorVersion = minorVersion
            self.keepAlive = keepAlive
        }
    }

    /// Appends a whole response.
    /// - Parameters:
    ///   - unixSeconds: The present, for `Date`.
    ///   - output: The buffer it is appended to.
    package mutating func encode(
        _ response: borrowing HTTPResponse,
        _ context: Context,
        unixSeconds: Int64,
        to output: inout [UInt8]
    ) {
        // RFC 9110 §6.6.1: a server with a clock sends Date.
        if unixSeconds != dateSecond { renewDate(unixSeconds) }
        let room = Self.fixedByteCount + dateLine.count + response.fields.count + response.body.count
        output.append(addingCapacity: room) { (output: inout OutputSpan<UInt8>) in
            Self.write(response, context, dateLine.span, to: &output)
        }
    }

    /// Greatest length of a response without its date line, its handler's fields and its content: the status line, the
    /// `Content-Length` line of 37 bytes at most and the `Connection` line of 26 with the empty one.
    private static let fixedByteCount = StatusLine.byteCount + 80

    private static func write(
        _ response: borrowing HTTPResponse,
        _ context: Context,
        _ dateLine: Span<UInt8>,
        to output: inout OutputSpan<UInt8>
    ) {
        let status = response.status
        // RFC 9112 §6.1 and RFC 9110 §8.6: no content and no length in 204; RFC 9110 §15.4.5: no content in 304.
        let hasContent = status != 204 && status != 304
        StatusLine.append(status, to: &output)
        output.append(dateLine)
        output.append(response.fields.span)
        if hasContent {
            output.append("Content-Length: ")
            DecimalNumber.append(response.body.count, to: &output)
            output.append("\r\n")
        }
        // RFC 9112 §9.3 and §9.6.
        if !context.keepAlive {
            output.append("Connection: close\r\n\r\n")
        } else if context.minorVersion == 0 {
            output.append("Connection: keep-alive\r\n\r\n")
        } else {
            output.append("\r\n")
        }
        // RFC 9110 §9.3.2: the answer to HEAD is that to GET without content.
        let isHead = if case .head = context.method { true } else { false }
        if hasContent, !isHead { output.append(response.body.span) }
    }

    /// Appends the interim response that lets a client send its body (RFC 9110 §15.2.1).
    package func encodeContinue(to output: inout [UInt8]) {
        Self.append("HTTP/1.1 100 Continue\r\n\r\n", to: &output)
    }

    private mutating func renewDate(_ unixSeconds: Int64) {
        dateLine.removeAll(keepingCapacity: true)
        Self.append("Date: ", to: &dateLine)
        HTTPDate.append(unixSeconds: unixSeconds, to: &dateLine)
        Self.append("\r\n", to: &dateLine)
        dateSecond = unixSeconds
    }

    static func append(_ text: StaticString, to output: inout [UInt8]) {
        // A StaticString's bytes are a constant of the program.
        unsafe output.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
}
