internal import JOSE

/// The header of the token before, kept because the next token most often has the same.
///
/// The decoded header and its document hold it too, for as long as it is known: whoever is about to change them forgets it
/// first.
extension TokenBuffers {
    /// The header that passed its checks before, when `range` of `token` is the same text; else nil.
    func knownHeader(_ token: Span<UInt8>, _ range: Range<Int>) -> JOSEHeader? {
        guard let header = passedHeader, token.areEqual(range, to: passedHeaderText.span) else { return nil }
        return header
    }

    /// Keeps a header that passed its checks, unless it is longer than any issuer's.
    mutating func remember(_ header: JOSEHeader, _ token: Span<UInt8>, _ range: Range<Int>) {
        guard range.count <= VerificationLimits.rememberedHeaderByteCount else { return }
        passedHeaderText.removeAll(keepingCapacity: true)
        for offset in range { passedHeaderText.append(token[offset]) }
        passedHeader = header
    }

    /// Knows no header any more.
    mutating func forgetHeader() { passedHeader = nil }
}
