/// The status lines this project sends, each written out (RFC 9112 §4: a space follows the code, come what may).
package enum StatusLine {
    /// Greatest length of a status line in bytes: a status has at most five digits, a phrase 31 bytes.
    static let byteCount = 48

    static func append(_ status: UInt16, to output: inout OutputSpan<UInt8>) {
        // Nearly every answer's.
        if status == 200 { return output.append("HTTP/1.1 200 OK\r\n") }
        output.append("HTTP/1.1 ")
        DecimalNumber.append(Int(status), to: &output)
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
