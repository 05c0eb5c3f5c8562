internal import JOSE

/// The buffers of one worker: reused for every token so that a verdict allocates nothing. Not Sendable.
public final class VerificationWorkspace {
    /// The decoded key ID of the token judged last, once its header was read; else empty.
    package var keyID: [UInt8] = []
    /// The decoded JSON payload of the token judged last. Only `VerifiedClaims` of that same token may be read with it.
    package var payload: [UInt8] = []

    public init() {}
}
