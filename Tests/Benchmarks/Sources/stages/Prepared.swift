internal import LLHTTP
internal import LLJOSE
internal import LimitedLogin

/// The values that the stages need, and that a worker has before the first request.
struct Prepared {
    let keys: VerificationKeys
    /// The key that signed the first token.
    let key: PublicKey
    let verifier: TokenVerifier
    let now: NumericDate
    /// The digest of each token's signing input.
    let digests: [SHA256Digest]
    /// The verdict on the first token.
    let claims: VerifiedClaims
    let keyID: [UInt8]

    init(_ inputs: Inputs, keySet: JWKSet, appID: String) throws {
        keys = VerificationKeys(keySet)
        verifier = TokenVerifier(policy: try VerificationPolicy(appIDs: [appID]))
        guard let now = NumericDate(secondsSince1970: WallClock.unixSeconds()) else { throw Failure("clock") }
        self.now = now
        var digests: [SHA256Digest] = []
        for token in inputs.tokens {
            guard let jws = JWSCompactSerialization(splitting: token.span) else { throw Failure("no JWS") }
            digests.append(try SHA256.digest(of: token.span.extracting(jws.signingInput)))
        }
        self.digests = digests
        key = try Self.signer(keySet, inputs.signatures[0], digests[0])
        let (token, nonce) = (inputs.tokens[0], inputs.nonces[0])
        var workspace = VerificationWorkspace()
        claims = try verifier.judge(
            token.span,
            TokenExpectation(TokenBinding(nonce: nonce)),
            keys: keys,
            now: now,
            workspace: &workspace
        )
        keyID = workspace.keyID
    }

    private static func signer(_ set: JWKSet, _ signature: [UInt8], _ digest: SHA256Digest) throws -> PublicKey {
        for candidate in set.keys {
            let key = try PublicKey(candidate.numbers)
            if key.isValidSignature(signature.span, of: digest) { return key }
        }
        throw Failure("no key of the set signed the first token")
    }
}
