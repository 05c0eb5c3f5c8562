internal import Bytes

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

    /// Appends a whole response; of one whose body is shared, all but the body.
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
        let room =
            Self.fixedByteCount + dateLine.count + response.fields.count
            + (response.bodyIsShared ? 0 : response.body.count)
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
            output.append(decimal: response.body.count)
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
        if hasContent, !isHead, !response.bodyIsShared { output.append(response.body.span) }
    }

    /// Whether a response so encoded is followed by its body.
    package static func sharedBodyFollows(_ response: borrowing HTTPResponse, _ method: HTTPMethod) -> Bool {
        let isHead = if case .head = method { true } else { false }
        return response.bodyIsShared && !isHead && response.status != 204 && response.status != 304
    }

    /// Appends the interim response that lets a client send its body (RFC 9110 §15.2.1).
    package func encodeContinue(to output: inout [UInt8]) {
        output.append("HTTP/1.1 100 Continue\r\n\r\n")
    }

    private mutating func renewDate(_ unixSeconds: Int64) {
        dateLine.removeAll(keepingCapacity: true)
        dateLine.append("Date: ")
        HTTPDate.append(unixSeconds: unixSeconds, to: &dateLine)
        dateLine.append("\r\n")
        dateSecond = unixSeconds
    }
}

/// The status lines this project sends, each written out (RFC 9112 §4: a space follows the code, come what may).
package enum StatusLine {
    /// Greatest length of a status line in bytes: a status has at most five digits, a phrase 31 bytes.
    static let byteCount = 48

    static func append(_ status: UInt16, to output: inout OutputSpan<UInt8>) {
        // Nearly every answer's.
        if status == 200 { return output.append("HTTP/1.1 200 OK\r\n") }
        output.append("HTTP/1.1 ")
        output.append(decimal: Int(status))
        output.append(ASCII.space)
        output.append(reason(status))
        output.append("\r\n")
    }

    /// The reason phrase of RFC 9110 §15; empty for a status without one here.
    package static func reason(_ status: UInt16) -> StaticString {
        switch status {
        case 200: "OK"
        case 201: "Created"
        case 204: "No Content"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 411: "Length Required"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 417: "Expectation Failed"
        case 421: "Misdirected Request"
        case 422: "Unprocessable Content"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: ""
        }
    }
}
