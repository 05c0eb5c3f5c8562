extension JWKSetCache {
    /// All that changes, guarded by the cache's one lock. No request with a known key takes it.
    struct Storage: Sendable {
        var machine: JWKSetCacheState
        /// How old the keys already were when they were published; above zero only for a seed.
        var ageWhenPublished = Duration.zero
        /// The source whose answer is in force, and the entity tag it gave; the tag is worth nothing to any other.
        var currentSource: Int?
        var validator: String?
        /// The bytes in force, kept only for the seed file.
        var bytes: [UInt8] = []
        var counters = JWKSetCacheStatus.Counters()
        var lastError: String?
        var announcedPhase = JWKSetCachePhase.empty
        /// The number of the alarm that is set; earlier ones are void.
        var alarm: UInt64 = 0
        var updateHandlers: [@Sendable () -> Void] = []
        var waiters: [UInt64: Waiter] = [:]
        var nextWaiter: UInt64 = 0

        init(machine: JWKSetCacheState) {
            self.machine = machine
        }
    }

    /// Somebody who waits for the end of a fetch.
    struct Waiter: Sendable {
        /// The number of the fetch that was under way when the waiting began.
        let fetch: UInt64
        let resume: @Sendable () -> Void
    }
}
