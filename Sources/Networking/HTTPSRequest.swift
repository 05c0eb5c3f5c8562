internal import HTTP1

/// A request of the client, without a body.
struct HTTPSRequest {
    let method: String
    let url: HTTPURL
    let headers: [HTTPSResponse.Field]

    /// The bytes of the request. Fields that could split it are refused (RFC 9110, 5.5).
    func encoded() throws(HTTPSClientError) -> [UInt8] {
        var lines = [
            "\(method) \(url.target) HTTP/1.1",
            "Host: \(url.authority)",
            "User-Agent: limited-login",
            "Accept: */*",
            "Accept-Encoding: identity",
            // Fetches lie an hour apart: a kept connection would only be found dead.
            "Connection: close",
        ]
        for field in headers {
            guard !field.name.isEmpty, field.name.utf8.allSatisfy(FieldGrammar.isTokenByte),
                field.value.utf8.allSatisfy(FieldGrammar.isValueByte)
            else { throw .malformedRequest }
            lines.append("\(field.name): \(field.value)")
        }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }
}
