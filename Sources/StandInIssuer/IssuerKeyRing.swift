internal import Bytes
internal import JOSE
package import OpenSSL
internal import Sockets
internal import Synchronization

/// The stand-in issuer's signing keys: as Facebook's, exactly two are published and the newest signs.
package final class IssuerKeyRing: Sendable {
    /// Number of keys published at any time.
    package static let publishedCount = 2

    private let minters: Locked<[TokenMinter]>
    private let unpublished = Locked<TokenMinter?>(nil)
    private let isAwayNow = Atomic(false)
    /// The device whose proofs `POST /proofs` makes.
    package let device: ProofMinter

    /// Generates the first two keys; takes a few tenths of a second.
    package init() throws(OpenSSLError) {
        device = ProofMinter(key: try P256PrivateKey.generate())
        minters = Locked([try TokenMinter.make(), try TokenMinter.make()])
    }

    /// The key that signs now.
    package var current: TokenMinter { minters.withLock { $0[0] } }

    /// The published keys, newest first.
    package var published: [TokenMinter] { minters.withLock { $0 } }

    /// The payload of a token that one of the published keys signed; nil of any other.
    func payload(of token: [UInt8]) -> [UInt8]? {
        guard let parts = try? JWSCompactSerialization(splitting: token.span) else { return nil }
        var payload: [UInt8] = []
        var signature: [UInt8] = []
        guard Base64URL.decode(token.span, parts.payload, into: &payload),
            Base64URL.decode(token.span, parts.signature, into: &signature),
            // The signature scheme is deterministic, so that signing again is verifying.
            published.contains(where: { (try? $0.key.signature(for: Array(token[parts.signingInput]))) == signature })
        else { return nil }
        return payload
    }

    /// A key that is never published: what a forger has. Always the same one, made when it is first asked for.
    package func stranger() throws(OpenSSLError) -> TokenMinter {
        if let minter = unpublished.withLock({ $0 }) { return minter }
        let made = try TokenMinter.make()
        return unpublished.withLock { minter in
            let kept = minter ?? made
            minter = kept
            return kept
        }
    }

    /// True while the JWK Set is answered with 503, as in an outage of Facebook's; tokens are still signed.
    package var isAway: Bool {
        get { isAwayNow.load(ordering: .relaxed) }
        set { isAwayNow.store(newValue, ordering: .relaxed) }
    }

    /// Makes a new key the signing one, keeps the last one published and drops the one before.
    ///
    /// - Returns: the new key.
    @discardableResult
    package func rotate() throws(OpenSSLError) -> TokenMinter {
        let newest = try TokenMinter.make()
        minters.withLock { all in
            all.insert(newest, at: 0)
            all.removeLast(all.count - Self.publishedCount)
        }
        return newest
    }
}
