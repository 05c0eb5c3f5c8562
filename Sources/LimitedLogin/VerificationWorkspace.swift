/// The buffers of one worker: reused for every token, so that a verdict allocates nothing.
///
/// Not Sendable: each worker has its own.
public final class VerificationWorkspace {
    var buffers = TokenBuffers()

    /// An empty workspace. It grows to the sizes real tokens need and stays below 256 KiB.
    public init() {}

    /// The decoded JSON header of the token judged last.
    ///
    /// The three arrays here are the workspace's own: reading them is free, but to hold one while the next
    /// token is judged costs that token a copy.
    package var header: [UInt8] { buffers.header }

    /// The decoded JSON payload of the token judged last: what the ranges of its `VerifiedClaims` point into.
    package var payload: [UInt8] { buffers.payload }

    /// The nonce of the token accepted last, where the binding was ``BindingKind/issuedNonce``; else of one before.
    package var recognizedNonce: RecognizedNonce? { buffers.recognizedNonce }

    /// The key ID of the token judged last, escapes decoded. Empty when its header was not read that far, and
    /// when the ID is so long that no published key could have it, so that a refetch would be in vain.
    package var keyID: [UInt8] { buffers.keyID }
}
