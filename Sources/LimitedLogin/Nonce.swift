/// A nonce as Facebook's SDK takes it: not empty and without white space of any kind.
public struct Nonce: Equatable, Sendable {
    /// The nonce itself.
    public let value: String

    /// Takes a nonce made elsewhere; nil when it is empty or holds white space.
    public init?(_ value: String) {
        guard Self.isValid(value.utf8.span) else { return nil }
        self.value = value
    }

    /// Whether these UTF-8 bytes are a nonce.
    package static func isValid(_ bytes: Span<UInt8>) -> Bool { false }
}
