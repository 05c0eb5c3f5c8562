internal import Bytes
internal import LimitedLogin
package import OpenSSL

/// Signatures that were found good before, so that the same token again costs no RSA operation. One for each worker.
///
/// What is remembered is a fact that does not age: these bytes are signed by this key. All three are part of what is
/// compared: the key itself (its numbers, never its ID), SHA-256 of the signing input, and the signature. Everything
/// else about a token, whether the key is still in force included, is judged anew each time, and no failure is kept.
///
/// A signature enters only once its token was accepted, so that neither forged nor expired tokens take anybody's place.
package final class SignatureMemory: SignatureCheck {
    /// What the last check left for ``keepLatest()``.
    private enum Latest {
        case nothing
        case known(RecentDigests.Place)
        case new(SHA256Digest)
    }

    private var digests: RecentDigests
    private var latest = Latest.nothing
    /// 32 random bytes, then what is compared: one digest of all stands for it.
    private var message: [UInt8]
    private let sha256: SHA256?
    private let metrics: ServiceMetrics?

    /// 10,000: as many people as use one worker within minutes, in about half a megabyte.
    package static let defaultCapacity = 10_000
    /// The most that can be configured. 1,000,000 entries take some 52 MB for each worker.
    package static let greatestCapacity = 1_000_000
    private static let secretByteCount = 32

    /// - Parameter capacity: the most signatures remembered; zero for none.
    package init(capacity: Int, metrics: ServiceMetrics? = nil) {
        self.metrics = metrics
        // The secret keeps clients from choosing tokens that share a bucket. Without it nothing is remembered.
        let secret = capacity > 0 ? try? RandomBytes.make(count: Self.secretByteCount) : nil
        message = secret ?? []
        sha256 = secret == nil ? nil : try? SHA256()
        digests = RecentDigests(capacity: sha256 == nil ? 0 : capacity)
    }

    /// How many signatures are remembered.
    package var count: Int { digests.count }

    /// The bytes allocated for them.
    package var allocatedBytes: Int { digests.allocatedBytes }

    /// Whether `signature` is the key's signature of the message with this digest: found so before, or verified now.
    package func isValid(_ signature: Span<UInt8>, of digest: SHA256Digest, by key: RSAPublicKey) -> Bool {
        latest = .nothing
        guard let name = name(of: signature, digest, key) else {
            return key.isValidSignature(signature, of: digest)
        }
        if let place = digests.place(of: name) {
            latest = .known(place)
            metrics?.countSignature(isRemembered: true)
            return true
        }
        metrics?.countSignature(isRemembered: false)
        guard key.isValidSignature(signature, of: digest) else { return false }
        latest = .new(name)
        return true
    }

    /// The token whose signature was checked last is accepted: remember that signature, as the one used last.
    package func keepLatest() {
        switch latest {
        case .nothing: break
        case .known(let place): digests.use(place)
        case .new(let name): digests.add(name)
        }
        latest = .nothing
    }

    /// One digest of the key, the signing input's digest and the signature. All but the last have a fixed length, so no
    /// two triples make the same message. Nil where nothing is remembered, or OpenSSL fails.
    private func name(of signature: Span<UInt8>, _ digest: SHA256Digest, _ key: RSAPublicKey) -> SHA256Digest? {
        guard let sha256 else { return nil }
        message.removeLast(message.count - Self.secretByteCount)
        message.append(key.fingerprint.bytes.span)
        message.append(digest.bytes.span)
        message.append(signature)
        let all = message
        return sha256.digest(of: all.span)
    }
}
