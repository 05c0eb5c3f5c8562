package import Synchronization

/// A value that several threads share, each while it holds the lock.
package final class Locked<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>
    /// The thread sanitizer does not see the library's lock and would report each access as a race. It sees the load and
    /// the store of this flag, which put the accesses in the same order.
    private let wasHeld = Atomic<Bool>(false)

    package init(_ value: Value) { mutex = Mutex(value) }

    /// Runs `body` while no other thread does. `body` must not take the same lock again.
    package func withLock<Result, Failure>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
        try mutex.withLock { (value: inout sending Value) throws(Failure) -> sending Result in
            _ = wasHeld.load(ordering: .acquiring)
            defer { wasHeld.store(true, ordering: .releasing) }
            return try body(&value)
        }
    }
}

/// A value that is replaced as a whole while threads use it, each with its own copy: settings, keys, certificates.
package final class Published<Value: Sendable>: Sendable {
    private let current: Locked<Value>
    @usableFromInline let number = Atomic<UInt64>(0)

    package init(_ value: Value) { current = Locked(value) }

    /// The number of values published so far. One atomic load tells a reader that nothing has changed.
    @inlinable package var epoch: UInt64 { number.load(ordering: .acquiring) }

    package var value: Value { current.withLock { $0 } }

    package func publish(_ value: Value) {
        current.withLock { $0 = value }
        number.wrappingAdd(1, ordering: .releasing)
    }

    package struct Copy {
        @usableFromInline let published: Published
        @usableFromInline let epoch: UInt64
        package let value: Value

        package init(_ published: Published) {
            self.published = published
            // Read the epoch first: a publish in between only causes a second refresh.
            epoch = published.epoch
            value = published.value
        }

        @inlinable package var isOld: Bool { published.epoch != epoch }

        package var renewed: Copy { Copy(published) }
    }
}

/// The trace context of the incoming request that caused this call.
package enum CallTrace {
    /// The `traceparent` (W3C Trace Context, section 3.2) that each request of this thread passes on; nil for calls
    /// that no incoming request caused. The service records no span of its own, so the value stays unchanged (section
    /// 3.3).
    @TaskLocal package static var parent: String?
}
