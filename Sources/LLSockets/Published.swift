internal import Glibc
package import Synchronization

/// A value that is replaced as a whole while threads use it, each with its own copy: settings, keys, certificates.
package final class Published<Value: Sendable>: Sendable {
    private let current: Locked<Value>
    @usableFromInline let number = Atomic<UInt64>(0)

    /// The first value; its number is 0.
    package init(_ value: Value) { current = Locked(value) }

    /// The number of values published so far. One atomic load tells a reader that nothing has changed.
    @inlinable package var epoch: UInt64 { number.load(ordering: .acquiring) }

    package var value: Value { current.withLock { $0 } }

    package func publish(_ value: Value) {
        current.withLock { $0 = value }
        number.wrappingAdd(1, ordering: .releasing)
    }

    /// One thread's copy of the value.
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

        /// True if another value has been published since.
        @inlinable package var isOld: Bool { published.epoch != epoch }

        /// A copy of the current value.
        package var renewed: Copy { Copy(published) }
    }
}

/// A value that several threads share, each while it holds the lock.
///
/// It uses a POSIX mutex and not the library's `Mutex`, because the thread sanitizer knows only the POSIX one. With
/// `Mutex` it reports every guarded access as a race, and a true race would be lost among these reports.
///
/// `value` is accessed only while `mutex` is held; hence `@unchecked Sendable`.
@safe package final class Locked<Value: Sendable>: @unchecked Sendable {
    // A mutex must not move, so it has its own memory for the life of this object.
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

    /// Runs `body` while no other thread does. `body` must not take the same lock again.
    package func withLock<Result, Failure>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        _ = unsafe pthread_mutex_lock(mutex)
        defer { _ = unsafe pthread_mutex_unlock(mutex) }
        return try body(&value)
    }
}
