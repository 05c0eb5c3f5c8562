internal import JOSE

/// What a claim must be before its value is looked at.
extension TokenVerifier {
    /// A claim that must be there and be a string that is not empty. A wrong type is a fault, never an absence
    /// (CVE-2026-25537).
    func requireString(
        _ node: Int?,
        _ claim: ClaimName,
        _ buffers: inout TokenBuffers
    ) throws(TokenRejection) -> Int {
        guard let node else { throw .missingClaim(claim) }
        guard let range = buffers.payloadDocument.stringRange(node) else { throw .malformedClaim(claim, .wrongType) }
        guard !range.isEmpty else { throw .malformedClaim(claim, .empty) }
        return node
    }

    /// A claim that must be there and be a NumericDate (RFC 7519 section 2): a JSON number, from 0 to 2⁵³.
    func requireDate(
        _ node: Int?,
        _ claim: ClaimName,
        _ buffers: inout TokenBuffers
    ) throws(TokenRejection) -> NumericDate {
        guard let node else { throw .missingClaim(claim) }
        guard buffers.payloadDocument.isNumber(node) else { throw .malformedClaim(claim, .wrongType) }
        guard let date = NumericDate(node, in: buffers) else { throw .malformedClaim(claim, .outOfRange) }
        return date
    }

    /// Whether the value of a string is a member of the set.
    func isMember(_ node: Int, of set: ByteStringSet, _ buffers: inout TokenBuffers) -> Bool {
        guard buffers.payloadDocument.isEscaped(node) else {
            return set.contains(buffers.payload.span, buffers.payloadDocument.range(node))
        }
        buffers.decodeToScratch(node)
        return set.contains(buffers.scratch.span, 0..<buffers.scratch.count)
    }
}

extension NumericDate {
    /// The moment a number of the payload stands for; nil outside 0 to 2⁵³.
    fileprivate init?(_ node: Int, in buffers: borrowing TokenBuffers) {
        // An integer is judged exactly: as a double, 2⁵³ + 1 would pass for 2⁵³.
        if let integer = buffers.payloadDocument.integer(node, in: buffers.payload.span) {
            self.init(secondsSince1970: integer)
            return
        }
        guard let value = buffers.payloadDocument.double(node, in: buffers.payload.span),
            value < NumericDate.greatestSeconds
        else { return nil }
        self.init(secondsSince1970: value)
    }
}

extension TokenBuffers {
    /// Whether a payload's string is ASCII and no longer than a subject may be.
    mutating func isShortASCII(_ node: Int) -> Bool {
        if payloadDocument.isEscaped(node) {
            decodeToScratch(node)
            return scratch.count <= VerificationLimits.subjectByteCount && scratch.span.isASCII(0..<scratch.count)
        }
        let range = payloadDocument.range(node)
        return range.count <= VerificationLimits.subjectByteCount && payload.span.isASCII(range)
    }
}
