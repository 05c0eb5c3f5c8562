/// base64url without padding (RFC 4648 section 5, RFC 7515 section 2), with exactly one spelling for each value.
package enum Base64URL {
    /// Decodes `range` of `text` into `buffer`, replacing its content and keeping its memory.
    ///
    /// Refuses padding, any character outside the alphabet, a length that no value has, and unused bits
    /// that are not zero (RFC 4648 section 3.5).
    /// - Returns: whether the text is strict base64url. When it is not, the buffer is empty.
    package static func decode(_ text: Span<UInt8>, _ range: Range<Int>, into buffer: inout [UInt8]) -> Bool { false }

    /// The base64url text of `bytes`.
    package static func encode(_ bytes: [UInt8]) -> [UInt8] { [] }
}
