internal import Bytes

/// Writes `application/x-www-form-urlencoded` text: a form's content, or a query.
package enum FormEncoding {
    /// `name=value` pairs joined with `&`.
    package static func encode(_ parameters: [(name: String, value: String)]) -> String {
        parameters.map { "\(PercentEncoding.encode($0.name))=\(PercentEncoding.encode($0.value))" }.joined(
            separator: "&"
        )
    }
}
