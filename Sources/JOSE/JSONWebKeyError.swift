/// Why one JWK cannot be used to verify RS256 signatures.
public enum JSONWebKeyError: Error, Equatable, Sendable {
    /// It is not a JSON object.
    case notAnObject
}
