internal import Glibc

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
