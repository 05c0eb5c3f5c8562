/// Why bytes are no JWS in compact serialization.
package enum JWSError: Error, Equatable, Sendable {
    /// There are not exactly two full stops.
    case notThreeParts(count: Int)
    /// Nothing stands before the first full stop.
    case emptyHeader
    /// Nothing stands after the second full stop: an unsecured or stripped token (RFC 7515 appendix A.5).
    case emptySignature
}
