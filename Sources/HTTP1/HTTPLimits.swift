/// Every limit of the HTTP/1.1 grammar, with its default and the reason for it.
package struct HTTPLimits: Sendable, Equatable {
    /// Request line, in bytes, without its line end: 8,192. RFC 9112 §3 asks for 8,000 at least; beyond it 414.
    package var requestLineBytes = 8_192
    /// Header section, in bytes, request line not counted: 32 KiB, since gateways forward their user's cookies; 431.
    package var headerSectionBytes = 32_768
    /// Field lines in a header section: 100, as Envoy, hyper and Kestrel; beyond it 431.
    package var fieldCount = 100
    /// Body, in bytes, after chunked coding is removed: 16 KiB, eight times the longest token; beyond it 413.
    package var bodyBytes = 16_384
    /// Chunk extensions of a whole message, in bytes: 256 (RFC 9112 §7.1.1 asks for a bound); beyond it 400.
    package var chunkExtensionBytes = 256
    /// Trailer section, in bytes: 8 KiB; trailers are checked and dropped; beyond it 431.
    package var trailerSectionBytes = 8_192
    /// Chunks in one message: 4,096, so that one-byte chunks cannot be had without end; beyond it 400.
    package var chunkCount = 4_096
    /// Empty lines before a request line: 4 (RFC 9112 §2.2 asks for at least one); beyond it 400.
    package var leadingEmptyLines = 4

    package init() {}
}
