internal import JOSE
internal import OpenSSL

/// The buffers of one worker: reused for every token, so that a verdict allocates nothing.
///
/// Not Sendable: each worker has its own.
package final class VerificationWorkspace {
    var buffers = TokenBuffers()

    /// An empty workspace. It grows to the sizes real tokens need and stays below 256 KiB.
    package init() {}

    /// The decoded JSON header of the token judged last.
    ///
    /// The three arrays here are the workspace's own: reading them is free, but to hold one while the next
    /// token is judged costs that token a copy.
    package var header: [UInt8] { buffers.header }

    /// The decoded JSON payload of the token judged last: what the ranges of its `VerifiedClaims` point into.
    package var payload: [UInt8] { buffers.payload }

    /// The nonce of the token accepted last, where the binding was ``BindingKind/issuedNonce``
    /// and the token begins a login; else nil.
    package var recognizedNonce: RecognizedNonce? { buffers.recognizedNonce }

    /// The key ID of the token judged last, escapes decoded. Empty when its header was not read that far, and
    /// when the ID is so long that no published key could have it, so that a refetch would be in vain.
    package var keyID: [UInt8] { buffers.keyID }
}

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
