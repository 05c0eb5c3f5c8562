internal import CLLOpenAPI

/// The OpenAPI 3.1 document of the service's listener. Tests compare it with ``Route`` and ``Rejection/Code``.
package enum OpenAPIDocument {
    /// The document without white space between its values, made at first use.
    package static let bytes: [UInt8] = {
        var bytes: [UInt8] = []
        var isInString = false
        var isEscaped = false
        for byte in unsafe String(cString: openapi_document()).utf8 {
            if isInString || byte > UInt8(ascii: " ") { bytes.append(byte) }
            if byte == UInt8(ascii: "\""), !isEscaped { isInString.toggle() }
            isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
        }
        return bytes
    }()
}
