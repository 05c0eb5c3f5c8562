#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

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
        // With default attributes this cannot fail.
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
