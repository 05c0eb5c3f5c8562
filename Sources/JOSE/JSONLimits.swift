/// The bounds of the JSON reader. Reaching one refuses the text; nothing is silently clipped.
package struct JSONLimits: Equatable, Sendable {
    /// Greatest length of the whole text in bytes. 64 KiB: the largest JWK Set that is read.
    package var byteCount = 65_536
    /// Greatest nesting of objects and arrays. 16: real tokens and key sets need 3.
    package var depth = 16
    /// Greatest number of members in one object. 256: bounds the search for repeated names.
    package var memberCount = 256
    /// Greatest number of values and names in the text. 16,384: bounds the tape to 256 KiB.
    package var nodeCount = 16_384
    /// Greatest length of one number in bytes. 64: three times what a double needs.
    package var numberByteCount = 64

    /// The default bounds.
    package init() {}
}
