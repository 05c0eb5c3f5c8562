/// Why a text is no JWK Set at all.
public enum JSONWebKeySetError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The text is longer than 64 KiB.
    case tooLong
    /// The text is not strict JSON; the reason and the place as a clause.
    case malformed(String)
    /// The text is JSON but no object with an array `keys` (RFC 7517 section 5.1), or names `keys` twice.
    case notAKeySet
    /// The array holds more than 64 keys.
    case tooManyKeys

    /// The reason as one sentence without its full stop.
    public var description: String {
        switch self {
        case .tooLong: "the JWK Set is longer than \(JSONWebKeySet.Limits.byteCount) bytes"
        case .malformed(let reason): "the JWK Set is not JSON: \(reason)"
        case .notAKeySet: "the JSON text is no JWK Set: it is no object with one array \"keys\""
        case .tooManyKeys: "the JWK Set holds more than \(JSONWebKeySet.Limits.keyCount) keys"
        }
    }
}
