internal import Glibc
package import Synchronization

/// A value that is replaced as a whole while threads use it, each by a copy of its own: settings, keys, certificates.
package final class Published<Value: Sendable>: Sendable {
    private let current: Locked<Value>
    @usableFromInline let number = Atomic<UInt64>(0)

    /// The first value; its number is 0.
    package init(_ value: Value) { current = Locked(value) }

    /// How often a value has been published. One atomic load tells a reader that nothing has changed.
    @inlinable package var epoch: UInt64 { number.load(ordering: .acquiring) }

    package var value: Value { current.withLock { $0 } }

    package func publish(_ value: Value) {
        current.withLock { $0 = value }
        number.wrappingAdd(1, ordering: .releasing)
    }

    /// What one thread holds of it.
    package struct Copy {
        @usableFromInline let published: Published
        @usableFromInline let epoch: UInt64
        package let value: Value

        package init(_ published: Published) {
            self.published = published
            // Read the number first: a value published in between is taken again, never missed.
            epoch = published.epoch
            value = published.value
        }

        /// Whether another value has come into force since.
        @inlinable package var isOld: Bool { published.epoch != epoch }

        /// A copy of the value in force.
        package var renewed: Copy { Copy(published) }
    }
}

/// A value that several threads share, each while it holds the lock.
///
/// A POSIX mutex rather than the library's `Mutex`, for the thread sanitizer knows the one and not the other: with
/// `Mutex` it reports every guarded access as a race, and no true race can be told from them.
///
/// `value` is touched only while `mutex` is held; hence `@unchecked Sendable`.
@safe package final class Locked<Value: Sendable>: @unchecked Sendable {
    // A mutex must not move, so it has a place of its own for the life of this object.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private var value: Value

    package init(_ value: Value) {
        self.value = value
        unsafe mutex = .allocate(capacity: 1)
        unsafe mutex.initialize(to: pthread_mutex_t())
        // With default attributes this cannot fail on Linux.
        _ = unsafe pthread_mutex_init(mutex, nil)
    }

    deinit {
        _ = unsafe pthread_mutex_destroy(mutex)
        unsafe mutex.deallocate()
    }

    /// Runs `body` while no other thread does. It must not take the same lock again.
    package func withLock<Result, Failure>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        _ = unsafe pthread_mutex_lock(mutex)
        defer { _ = unsafe pthread_mutex_unlock(mutex) }
        return try body(&value)
    }
}
