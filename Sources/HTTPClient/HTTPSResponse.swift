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
