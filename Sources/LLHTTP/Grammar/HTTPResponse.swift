internal import CLLSystem
internal import LLBytes

/// One response, filled in by a handler. The value is reused: its storage survives ``reset()``.
///
/// The encoder writes `Date`, `Content-Length`, `Connection` and `Transfer-Encoding`; a handler adds none of them.
package struct HTTPResponse: ~Copyable {
    /// The status code, 200 … 599.
    package var status: UInt16 = 200
    /// Whole field lines, each with its CRLF, in the order of adding.
    package private(set) var fields: [UInt8] = []
    /// The content. For HEAD it is the content of GET: the encoder sends only its length (RFC 9110 §9.3.2).
    package var body: [UInt8] = []
    /// True if other responses share ``body``. It is then sent from its own storage, never copied.
    package private(set) var bodyIsShared = false
    package var closesConnection = false

    package init() {}

    package var isEmpty: Bool { fields.isEmpty && body.isEmpty }

    /// Forgets the response and keeps the storage.
    package mutating func reset() {
        status = 200
        // A test costs less than emptying an empty array.
        if !fields.isEmpty { fields.removeAll(keepingCapacity: true) }
        if !body.isEmpty { body.removeAll(keepingCapacity: !bodyIsShared) }
        bodyIsShared = false
        closesConnection = false
    }

    /// RFC 9112 §6.1 and RFC 9110 §8.6: a 204 has no content and no length. RFC 9110 §15.4.5: a 304 has no content.
    fileprivate var allowsContent: Bool { status != 204 && status != 304 }

    /// True if the body is sent in an answer to `method`. RFC 9110 §9.3.2: the answer to HEAD is the answer to GET
    /// without content.
    package func hasContent(for method: HTTPMethod) -> Bool {
        if case .head = method { false } else { allowsContent }
    }

    /// Sets the body to `content` without a copy, for large contents that do not change.
    package mutating func share(_ content: [UInt8]) {
        body = content
        bodyIsShared = true
    }

    /// Adds one constant field line without its CRLF, for instance `Cache-Control: no-store`.
    package mutating func addField(_ line: StaticString) {
        // A StaticString is a constant of the program and holds nothing from outside.
        fields.append(addingCapacity: line.utf8CodeUnitCount + 2) { (output: inout OutputSpan<UInt8>) in
            output.append(line)
            output.append("\r\n")
        }
    }

    /// Adds a field with a value made at run time.
    /// - Returns: False, and nothing is added, if a control byte in the value could split the response (RFC 9112 §11.1).
    @discardableResult
    package mutating func addField(_ name: StaticString, _ value: [UInt8]) -> Bool {
        guard FieldGrammar.isValue(value.span) else { return false }
        // The name is a constant of the program.
        fields.append(addingCapacity: name.utf8CodeUnitCount + value.count + 4) { (output: inout OutputSpan<UInt8>) in
            output.append(name)
            output.append(": ")
            output.append(value.span)
            output.append("\r\n")
        }
        return true
    }

    /// Adds a field with a configured name.
    /// - Parameter write: Appends a value of at most `byteCount` bytes, or returns false if there is none.
    @discardableResult
    package mutating func addField(
        _ name: FieldName,
        atMost byteCount: Int,
        _ write: (inout OutputSpan<UInt8>) -> Bool
    ) -> Bool {
        let (name, start) = (name.bytes.span, fields.count)
        var isThere = false
        fields.append(addingCapacity: name.count + byteCount + 4) { (output: inout OutputSpan<UInt8>) in
            output.append(name)
            output.append(": ")
            isThere = write(&output)
            output.append("\r\n")
        }
        if isThere, FieldGrammar.isValue(fields.span.extracting(start..<fields.count - 2)) { return true }
        fields.removeLast(fields.count - start)
        return false
    }

    @discardableResult
    package mutating func addField(_ name: StaticString, _ value: String) -> Bool {
        addField(name, Array(value.utf8))
    }
}

/// Writes responses, head and content, into one buffer. The `Date` line is kept for a second.
package struct ResponseEncoder: ~Copyable {
    private var dateLine: [UInt8] = []
    private var dateSecond = Int64.min

    package init() {}

    /// Appends a whole response; a shared body is not appended.
    /// - Parameters:
    ///   - minorVersion: The request's version. An HTTP/1.0 client is told if the connection persists.
    ///   - unixSeconds: The present, for `Date`.
    package mutating func encode(
        _ response: borrowing HTTPResponse,
        method: HTTPMethod,
        minorVersion: UInt8,
        keepAlive: Bool,
        unixSeconds: Int64,
        to output: inout [UInt8]
    ) {
        // RFC 9110 §6.6.1: a server with a clock must send Date.
        if unixSeconds != dateSecond { renewDate(unixSeconds) }
        let room =
            Self.fixedByteCount + dateLine.count + response.fields.count
            + (response.bodyIsShared ? 0 : response.body.count)
        output.append(addingCapacity: room) { (output: inout OutputSpan<UInt8>) in
            Self.append(response.status, to: &output)
            output.append(dateLine.span)
            output.append(response.fields.span)
            if response.allowsContent {
                output.append("Content-Length: ")
                output.append(decimal: response.body.count)
                output.append("\r\n")
            }
            // RFC 9112 §9.3 and §9.6.
            if !keepAlive {
                output.append("Connection: close\r\n\r\n")
            } else if minorVersion == 0 {
                output.append("Connection: keep-alive\r\n\r\n")
            } else {
                output.append("\r\n")
            }
            if response.hasContent(for: method), !response.bodyIsShared { output.append(response.body.span) }
        }
    }

    /// Greatest length of a response without its date line, its handler's fields and its content: a status line of at most
    /// 48 bytes (the longest phrase has 31), a `Content-Length` line of at most 37 bytes, and a `Connection` line of 26
    /// bytes with the empty line.
    private static let fixedByteCount = 128

    /// RFC 9112 §4: a space always follows the code.
    private static func append(_ status: UInt16, to output: inout OutputSpan<UInt8>) {
        // Nearly every answer has this status.
        if status == 200 { return output.append("HTTP/1.1 200 OK\r\n") }
        output.append("HTTP/1.1 ")
        output.append(decimal: Int(status))
        output.append(ASCII.space)
        output.append(reason(status))
        output.append("\r\n")
    }

    /// The phrases of RFC 9110 §15 for the statuses that this project sends.
    private static func reason(_ status: UInt16) -> StaticString {
        switch status {
        case 204: "No Content"
        case 302: "Found"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 417: "Expectation Failed"
        case 421: "Misdirected Request"
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

    /// IMF-fixdate (RFC 9110 §5.6.7), for instance `Sun, 06 Nov 1994 08:49:37 GMT`.
    private mutating func renewDate(_ unixSeconds: Int64) {
        // A moment outside the years 1970 … 9999 is moved to the nearer limit.
        var seconds = time_t(min(max(unixSeconds, 0), 253_402_300_799))
        var date = unsafe tm()
        // Both are values of this function.
        _ = unsafe gmtime_r(&seconds, &date)
        // The names are English, since a service sets no locale. 37 bytes and a final NUL fit into the text.
        var text = [CChar](repeating: 0, count: 38)
        let count = unsafe strftime(&text, text.count, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &date)
        dateLine = text[..<count].map { UInt8(bitPattern: $0) }
        dateSecond = unixSeconds
    }
}
