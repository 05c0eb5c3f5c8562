internal import JOSE
internal import OpenSSL

/// What one verdict writes to and the next one writes over.
struct TokenBuffers: ~Copyable {
    /// The decoded header.
    var header: [UInt8] = []
    /// The decoded payload.
    var payload: [UInt8] = []
    /// The decoded signature.
    var signature: [UInt8] = []
    /// The key ID, escapes decoded.
    var keyID: [UInt8] = []
    /// Room for one string that is spelt with escapes.
    var scratch: [UInt8] = []
    /// The nonce of the token judged last, where it was to be an issued one and is.
    var recognizedNonce: RecognizedNonce?
    /// What the decoded header holds, as it came, where it passed its checks; see `knownHeader`.
    var passedHeaderText: [UInt8] = []
    /// Its parameters; nil when none is known.
    var passedHeader: JOSEHeader?
    var headerDocument = JSONDocument(limits: VerificationLimits.header)
    var payloadDocument = JSONDocument(limits: VerificationLimits.payload)
    /// Nil only if OpenSSL has no SHA-256 or no memory; then nothing can be verified.
    let sha256 = try? SHA256()

    /// Puts the value of a payload's string into `scratch`.
    mutating func decodeToScratch(_ node: Int) {
        scratch.removeAll(keepingCapacity: true)
        payloadDocument.appendString(node, in: payload, to: &scratch)
    }

    /// The value of a payload's string.
    func payloadString(_ node: Int) -> String {
        payloadDocument.string(node, in: payload.span)
    }

    /// The value of the payload's member with this name, in the object at `node`.
    func member(_ name: StaticString, of node: Int) -> Int? {
        payloadDocument.member(name, of: node, in: payload.span)
    }
}
