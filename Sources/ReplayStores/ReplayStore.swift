/// Where it is remembered what was used.
package enum ReplayStore: Sendable {
    /// In this process: for one replica; answers at once.
    case memory(MemoryReplayStore)
    /// In a Redis or Valkey server: for any number of replicas; answers later, on another thread.
    case redis(RedisReplayStore)

    /// What came to be from this moment on is known, in milliseconds since 1970; nil while the store was never reached.
    package var vouchesSince: UInt64? {
        switch self {
        case .memory(let store): store.vouchesSince
        case .redis(let store): store.vouchesSince
        }
    }

    /// Whether questions are answered now, as far as is known.
    package var isUp: Bool {
        switch self {
        case .memory(let store): store.count < store.capacity
        case .redis(let store): store.isUp
        }
    }
}
