/// An answer of the Redis protocol, as far as this project asks for any.
package enum RedisReply: Equatable, Sendable {
    /// A simple string, such as `OK`.
    case status(String)
    /// An error, of which only the code, its first word, is kept.
    case error(code: String)
    case integer(Int64)
    case string([UInt8])
    case null
    case array([RedisReply])

    /// The text of a string or a status.
    package var text: String? {
        switch self {
        case .status(let text): text
        case .string(let bytes): String(decoding: bytes, as: UTF8.self)
        case .error, .integer, .null, .array: nil
        }
    }
}

/// Why bytes are no answer.
package enum RedisProtocolError: Error, Equatable, Sendable {
    /// They break the protocol, or announce more than is ever asked for.
    case malformed
    /// There are more of them than one answer may have.
    case tooLong
    /// There is no memory.
    case outOfMemory
}
