package import LLJOSE
package import LimitedLogin

/// The most recently used digests, each with a value, in two generations. When the newer one has half of ``capacity``,
/// it becomes the older one, and the digests that were used only before are forgotten.
///
/// So a digest stays until half of ``capacity`` others were used since, and a flood cannot remove it earlier. A random
/// secret decides which digests share a bucket (`Hasher`), so that a client cannot choose digests that collide.
package struct RecentDigests: Sendable {
    /// Nil for a token that does not fit into ``CachedClaims``.
    package typealias Value = CachedClaims?

    /// The greatest memory of a digest with its value, in bytes: a dictionary fills at least three eighths of its places.
    package static var bytesPerEntry: Int { (MemoryLayout<SHA256Digest>.stride + MemoryLayout<Value>.stride) * 8 / 3 }

    package let capacity: Int
    private var newer: [SHA256Digest: Value] = [:]
    private var older: [SHA256Digest: Value] = [:]

    package init(capacity: Int) { self.capacity = max(0, capacity) }

    package var count: Int { newer.count + older.count }

    /// The value of a digest; nil if it is not kept. All 32 bytes are compared.
    package func find(_ digest: SHA256Digest) -> Value? { newer[digest] ?? older[digest] }

    /// Marks the digest as the most recently used, and adds it if it is not kept.
    package mutating func use(_ digest: SHA256Digest, _ value: Value) {
        guard capacity > 0 else { return }
        newer.updateValue(value, forKey: digest)
        guard newer.count >= (capacity + 1) / 2 else { return }
        older = newer
        newer = [:]
    }
}
