internal import JOSE

extension JSONDocument {
    /// Reads a request's body, which must be one JSON object; its limits are this document's.
    @inline(__always)
    mutating func parseObject(_ body: Span<UInt8>) throws(Problem) {
        do throws(JSONError) {
            try parse(body)
        } catch {
            throw Problem(.invalidRequest, "The body is not acceptable JSON: \(error).")
        }
        guard kind(root) == .object else { throw Problem(.invalidRequest, "The body must be a JSON object.") }
    }
}
