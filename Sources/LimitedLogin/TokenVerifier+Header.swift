internal import JOSE
internal import OpenSSL

/// The header, the key it names and the signature.
extension TokenVerifier {
    func readHeader(_ buffers: inout TokenBuffers) throws(TokenRejection) -> JOSEHeader {
        do throws(JSONError) {
            try buffers.headerDocument.parse(buffers.header)
        } catch {
            throw .malformedToken(.invalidJSON(.header, reason: error.reason.rawValue))
        }
        guard let header = JOSEHeader(buffers.headerDocument, in: buffers.header.span) else {
            throw .malformedToken(.notAnObject(.header))
        }
        return header
    }

    func checkAlgorithm(_ header: JOSEHeader, _ buffers: inout TokenBuffers) throws(TokenRejection) {
        guard let node = header.algorithm, buffers.headerDocument.isString(node),
            buffers.headerDocument.string(node, equals: "RS256", in: buffers.header.span)
        else { throw .unsupportedAlgorithm(Self.shortName(header.algorithm, &buffers)) }
    }

    func checkCriticalHeader(_ header: JOSEHeader) throws(TokenRejection) {
        guard !header.hasCritical, !header.hasUnencodedPayload else { throw .unsupportedCriticalHeader }
    }

    func checkType(_ header: JOSEHeader, _ buffers: inout TokenBuffers) throws(TokenRejection) {
        if let type = header.type {
            guard buffers.headerDocument.string(type, equals: "JWT", in: buffers.header.span) else {
                throw .notAnIDToken(.type(Self.shortName(type, &buffers)))
            }
        }
        // RFC 7519 section 5.2: `cty` says that the payload is a token itself.
        guard !header.hasContentType else { throw .notAnIDToken(.nested) }
        guard !header.hasEncryption else { throw .notAnIDToken(.encrypted) }
    }

    func readKeyID(_ header: JOSEHeader, _ buffers: inout TokenBuffers) throws(TokenRejection) {
        guard let node = header.keyID, buffers.headerDocument.isString(node),
            !buffers.headerDocument.range(node).isEmpty
        else { throw .missingKeyID }
        buffers.keyID.removeAll(keepingCapacity: true)
        buffers.headerDocument.appendString(node, in: buffers.header, to: &buffers.keyID)
    }

    func findKey(
        in keys: VerificationKeys,
        _ buffers: inout TokenBuffers
    ) throws(TokenRejection) -> RSAPublicKey {
        guard !keys.isEmpty, buffers.sha256 != nil else { throw .keysUnavailable }
        if let key = keys.key(withID: buffers.keyID) { return key }
        let shown = buffers.keyID.prefix(64).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }
        // No set holds a longer one, so asking for it again would be in vain.
        if buffers.keyID.count > JSONWebKey.Limits.keyIDByteCount { buffers.keyID.removeAll(keepingCapacity: true) }
        throw .unknownKey(keyID: String(decoding: shown, as: UTF8.self))
    }

    func checkSignature(
        _ jws: JWSCompactSerialization,
        of token: Span<UInt8>,
        _ key: RSAPublicKey,
        _ buffers: inout TokenBuffers
    ) throws(TokenRejection) {
        // RFC 8017 section 8.2.2 step 1: checked before any arithmetic.
        guard buffers.signature.count == key.modulusByteCount else { throw .invalidSignature(.wrongLength) }
        // The very bytes received, not a re-encoding: RFC 7515 section 5.2 step 8.
        guard let digest = buffers.sha256?.digest(of: token.extracting(jws.signingInput)) else {
            throw .keysUnavailable
        }
        guard key.isValidSignature(buffers.signature.span, of: digest) else { throw .invalidSignature(.mismatch) }
    }

    /// A header value for an error's detail: only a short name, for it is an attacker's word.
    private static func shortName(_ node: Int?, _ buffers: inout TokenBuffers) -> String? {
        guard let node, buffers.headerDocument.isString(node) else { return nil }
        let name = buffers.headerDocument.string(node, in: buffers.header.span)
        let isShort = (1...20).contains(name.utf8.count)
        let isPlain = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
                UInt8(ascii: "/"):
                true
            default: false
            }
        }
        return isShort && isPlain ? name : nil
    }
}
