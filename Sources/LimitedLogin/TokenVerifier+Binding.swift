internal import JOSE
internal import OpenSSL

/// What ties the token to the login.
extension TokenVerifier {
    func checkBinding(
        _ payload: PayloadClaims,
        _ binding: BindingKind,
        _ value: Span<UInt8>,
        _ now: NumericDate,
        _ buffers: inout TokenBuffers
    ) throws(TokenRejection) {
        // Whatever the binding, a nonce that is there is a string (OpenID Connect Core section 2).
        if let nonce = payload[.nonce], !buffers.payloadDocument.isString(nonce) {
            throw .malformedClaim(.nonce, .wrongType)
        }
        switch binding {
        case .nonce: try checkNonce(payload, value, &buffers)
        case .rawNonce: try checkRawNonce(payload, value, &buffers)
        case .issuedNonce: try checkIssuedNonce(payload, now, &buffers)
        case .subject: try checkSubject(payload, value, &buffers)
        case .unbound: return
        }
    }

    private func checkNonce(
        _ payload: PayloadClaims,
        _ expected: Span<UInt8>,
        _ buffers: inout TokenBuffers
    ) throws(TokenRejection) {
        guard let nonce = payload[.nonce] else { throw .missingClaim(.nonce) }
        if isEqual(nonce, expected, &buffers) { return }
        let isHashed = buffers.sha256?.digest(of: expected).map { digest in
            isEqual(nonce, digest.hexadecimalBytes.span, &buffers)
        }
        throw .nonceMismatch(nonceFault(nonce, isHashed == true ? .hashed : .different, &buffers))
    }

    private func checkRawNonce(
        _ payload: PayloadClaims,
        _ raw: Span<UInt8>,
        _ buffers: inout TokenBuffers
    ) throws(TokenRejection) {
        guard let nonce = payload[.nonce] else { throw .missingClaim(.nonce) }
        guard let digest = buffers.sha256?.digest(of: raw) else { throw .keysUnavailable }
        let expected = digest.hexadecimalBytes
        if isEqual(nonce, expected.span, &buffers) { return }
        let isRaw = isEqual(nonce, raw, &buffers)
        throw .nonceMismatch(nonceFault(nonce, isRaw ? .notHashed : .different, &buffers))
    }

    /// The tag says who issued the nonce and for which app; the audience was checked before.
    private func checkIssuedNonce(
        _ payload: PayloadClaims,
        _ now: NumericDate,
        _ buffers: inout TokenBuffers
    ) throws(TokenRejection) {
        guard let nonces else { throw .noNonceIssuer }
        guard let node = payload[.nonce] else { throw .missingClaim(.nonce) }
        let appID = Array(buffers.payloadString(try audienceNode(payload, &buffers)).utf8)
        buffers.decodeToScratch(node)
        guard !buffers.scratch.isEmpty else { throw .nonceMismatch(.empty) }
        guard let nonce = nonces.recognize(buffers.scratch.span, appID: appID.span) else { throw .nonceNotIssued }
        guard now < nonce.expiresAt else { throw .nonceExpired(.over(at: nonce.expiresAt, now: now)) }
        buffers.recognizedNonce = nonce
    }

    private func checkSubject(
        _ payload: PayloadClaims,
        _ expected: Span<UInt8>,
        _ buffers: inout TokenBuffers
    ) throws(TokenRejection) {
        guard let subject = payload[.subject], isEqual(subject, expected, &buffers) else { throw .subjectMismatch }
    }

    /// Whether a payload's string has exactly this value, compared in constant time: the nonce is a secret
    /// between this login's app and backend. An empty claim equals nothing.
    private func isEqual(_ node: Int, _ expected: Span<UInt8>, _ buffers: inout TokenBuffers) -> Bool {
        guard !expected.isEmpty else { return false }
        guard buffers.payloadDocument.isEscaped(node) else {
            let range = buffers.payloadDocument.range(node)
            return ConstantTime.areEqual(buffers.payload.span.extracting(range), expected)
        }
        buffers.decodeToScratch(node)
        return ConstantTime.areEqual(buffers.scratch.span, expected)
    }

    private func nonceFault(
        _ nonce: Int,
        _ otherwise: TokenRejection.NonceFault,
        _ buffers: inout TokenBuffers
    ) -> TokenRejection.NonceFault {
        buffers.payloadDocument.range(nonce).isEmpty ? .empty : otherwise
    }
}
