internal import LLBytes

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
