internal import Synchronization

/// A value that several threads share, each while it holds the lock.
package final class Locked<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>
    /// The thread sanitizer does not see the library's lock and would report each access as a race. It sees the load and
    /// the store of this flag, which put the accesses in the same order.
    private let wasHeld = Atomic<Bool>(false)

    package init(_ value: Value) { mutex = Mutex(value) }

    /// Runs `body` while no other thread does. `body` must not take the same lock again.
    package func withLock<Result, Failure>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try mutex.withLock { (value: inout sending Value) throws(Failure) -> sending Result in
            _ = wasHeld.load(ordering: .acquiring)
            defer { wasHeld.store(true, ordering: .releasing) }
            return try body(&value)
        }
    }
}
