/// The head of a response as ranges of the bytes it was parsed from.
package struct ResponseHead: Sendable, Equatable {
    package struct Field: Sendable, Equatable {
        package let name: Range<Int>
        package let value: Range<Int>
    }

    /// How the end of the body is known (RFC 9112 §6.3).
    package enum Framing: Sendable, Equatable {
        /// No body, or one of so many bytes.
        case length(Int)
        case chunked
        /// The body ends with the connection.
        case untilClose
    }

    /// 200 … 599: interim responses are passed over.
    package internal(set) var status = 0
    package internal(set) var minorVersion = 1
    package internal(set) var fields: [Field] = []
    package internal(set) var framing = Framing.untilClose
    /// Where the body begins: bytes of the head and of the interim responses before it.
    package internal(set) var byteCount = 0

    package init() {}
}
