package import Synchronization

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Android)
internal import Android
#else
internal import Darwin
#endif

/// Reads a whole small file. Every failure carries the system's own reason as a sentence.
package enum FileContents {
    package struct Failure: Error, Sendable, Equatable {
        package let reason: String
        /// True if the file does not exist; false if it exists but cannot be read.
        package let isMissing: Bool
    }

    /// The bytes of the file at `path`.
    /// - Parameters:
    ///   - limit: The greatest size in bytes. A larger file is refused and not read.
    ///   - allowingPipe: True if the path may name a pipe, as in `--token-file <(…)`. The call then waits for the
    ///     pipe's writer. Files named by settings must not be pipes: a reload reads them again, and a writer could
    ///     delay it.
    ///   - mustBeOwn: True to refuse a file that a user other than this one and root owns or can change.
    package static func read(
        path: String,
        limit: Int,
        allowingPipe: Bool = false,
        mustBeOwn: Bool = false
    ) throws(Failure) -> [UInt8] {
        let (descriptor, facts) = try openFile(path, allowingPipe: allowingPipe)
        defer { _ = close(descriptor) }
        if mustBeOwn { try requireOwn(facts) }
        return try readAll(descriptor, limit)
    }

    /// The bytes of a regular file, and the second of its last change since 1970.
    package static func readRegular(path: String, limit: Int) throws(Failure) -> (bytes: [UInt8], changedAt: Int) {
        let (descriptor, facts) = try openFile(path)
        defer { _ = close(descriptor) }
        #if canImport(Darwin)
        let changedAt = facts.st_mtimespec.tv_sec
        #else
        let changedAt = facts.st_mtim.tv_sec
        #endif
        return (try readAll(descriptor, limit), changedAt)
    }

    /// Checks that a regular file can be read at `path`. Use it for files that OpenSSL opens itself, because OpenSSL
    /// would wait at a pipe.
    package static func requireRegular(path: String) throws(Failure) { _ = close(try openFile(path).descriptor) }

    /// Opens a regular file without waiting, or a pipe too if that is allowed.
    private static func openFile(
        _ path: String,
        allowingPipe: Bool = false
    ) throws(Failure) -> (descriptor: Int32, facts: stat) {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | (allowingPipe ? 0 : O_NONBLOCK))
        guard descriptor >= 0 else { throw failure() }
        var facts = stat()
        guard unsafe fstat(descriptor, &facts) == 0, allowingPipe || facts.st_mode & S_IFMT == S_IFREG else {
            _ = close(descriptor)
            throw Failure(reason: "it is not a regular file", isMissing: false)
        }
        return (descriptor, facts)
    }

    /// Refuses a file that others own or can change. A group may have write access only if its number equals the
    /// owner's: many systems give each user a group of their own and create files with mode 0664.
    private static func requireOwn(_ facts: stat) throws(Failure) {
        guard facts.st_uid == geteuid() || facts.st_uid == 0 else {
            throw Failure(reason: "it belongs to another user", isMissing: false)
        }
        guard facts.st_mode & (facts.st_gid == facts.st_uid ? 0o002 : 0o022) == 0 else {
            throw Failure(reason: "others can change it", isMissing: false)
        }
    }

    fileprivate static func failure() -> Failure {
        let number = errno
        return Failure(reason: SystemReason.sentence(for: number), isMissing: number == ENOENT)
    }
}

/// The rest of a file. It is no member, because the call that reads has the name of one.
private func readAll(_ descriptor: Int32, _ limit: Int) throws(FileContents.Failure) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16_384)
    while true {
        // The buffer is the array's own storage with the array's own count.
        let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
        if count < 0 {
            guard errno == EINTR else { throw FileContents.failure() }
            continue
        }
        guard count > 0 else { return bytes }
        guard bytes.count + count <= limit else {
            let size = DecimalNumber.grouped(limit)
            throw FileContents.Failure(reason: "the file is larger than \(size) bytes", isMissing: false)
        }
        bytes.append(contentsOf: chunk[..<count])
    }
}

package enum SystemReason {
    package static func sentence(for number: Int32) -> String {
        // `strerror` returns a constant or thread-local text that ends in NUL. The text is copied at once.
        guard let text = unsafe strerror(number) else { return "error \(number)" }
        return unsafe String(cString: text)
    }
}

package enum IPAddress {
    /// The bytes of an address in network order: 4 for IPv4 (dotted decimal without leading zeros), 16 for IPv6 (RFC 4291
    /// section 2.2); nil for anything else.
    package static func bytes(_ text: Span<UInt8>, _ range: Range<Int>) -> [UInt8]? {
        // No address is longer, and a NUL would end the text too early.
        guard range.count < INET6_ADDRSTRLEN, !range.contains(where: { text[$0] == 0 }) else { return nil }
        let isIPv6 = range.contains { text[$0] == UInt8(ascii: ":") }
        var bytes = [UInt8](repeating: 0, count: isIPv6 ? 16 : 4)
        let string = String(decoding: range.map { text[$0] }, as: UTF8.self)
        // The array has as many bytes as the family's address.
        return unsafe inet_pton(isIPv6 ? AF_INET6 : AF_INET, string, &bytes) == 1 ? bytes : nil
    }

    /// The usual short form of an address of 4 or 16 bytes (RFC 5952 for IPv6); empty for any other number of bytes.
    package static func text(_ bytes: [UInt8]) -> String {
        guard bytes.count == 4 || bytes.count == 16 else { return "" }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        // The longest text of an address fits, with its final NUL.
        let family = bytes.count == 16 ? AF_INET6 : AF_INET
        guard unsafe inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil else { return "" }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

/// A moment of the monotonic clock, in nanoseconds since an arbitrary start (the boot of the machine).
package struct MonotonicInstant: Comparable, Hashable, Sendable {
    package let nanoseconds: UInt64

    /// A moment that never comes: the deadline of a wait without one.
    package static let never = MonotonicInstant(nanoseconds: .max)

    @inlinable
    package init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

    /// The moment this long after the start of a clock.
    package init(_ time: Duration) { self.init(nanoseconds: time.wholeNanoseconds) }

    @inlinable
    package static func < (left: MonotonicInstant, right: MonotonicInstant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    package static func + (instant: MonotonicInstant, duration: Duration) -> MonotonicInstant {
        instant.adding(nanoseconds: duration.wholeNanoseconds)
    }

    /// The moment `nanoseconds` later; ``never`` if the sum exceeds the clock.
    @inlinable
    package func adding(nanoseconds duration: UInt64) -> MonotonicInstant {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(duration)
        return overflow ? .never : MonotonicInstant(nanoseconds: sum)
    }

    /// Nanoseconds from `earlier` to this moment; 0 if `earlier` is later.
    @inlinable
    package func nanoseconds(since earlier: MonotonicInstant) -> UInt64 {
        nanoseconds > earlier.nanoseconds ? nanoseconds - earlier.nanoseconds : 0
    }

    /// Time from `earlier` to this moment; zero if `earlier` is later.
    package func duration(since earlier: MonotonicInstant) -> Duration {
        .nanoseconds(Int64(clamping: nanoseconds(since: earlier)))
    }
}

/// The system's monotonic clock (`CLOCK_MONOTONIC`): it never jumps when the wall clock is set.
package enum MonotonicClock {
    package static func now() -> MonotonicInstant {
        MonotonicInstant(nanoseconds: UInt64(bitPattern: systemTime(CLOCK_MONOTONIC).wholeNanoseconds))
    }
}

/// The wall clock, for the `Date` field and token times.
package enum WallClock {
    package static func unixNanoseconds() -> Int64 { systemTime(CLOCK_REALTIME).wholeNanoseconds }

    /// Whole seconds since 1970-01-01T00:00:00Z, from the coarse clock: it is the cheapest, and a few milliseconds
    /// late.
    package static func unixSeconds() -> Int64 {
        #if os(Linux)
        Int64(systemTime(CLOCK_REALTIME_COARSE).tv_sec)
        #else
        Int64(systemTime(CLOCK_REALTIME).tv_sec)
        #endif
    }

    /// Whole milliseconds since 1970-01-01T00:00:00Z; 0 before.
    package static func unixMilliseconds() -> UInt64 { UInt64(clamping: unixNanoseconds() / 1_000_000) }
}

/// The time of a clock that every system has, so that the call cannot fail.
private func systemTime(_ clock: clockid_t) -> timespec {
    var time = timespec()
    _ = unsafe clock_gettime(clock, &time)
    return time
}

extension timespec {
    fileprivate var wholeNanoseconds: Int64 { Int64(tv_sec) &* 1_000_000_000 &+ Int64(tv_nsec) }
}

extension Duration {
    /// The duration in nanoseconds: 0 if negative, the greatest `UInt64` if it exceeds it.
    package var wholeNanoseconds: UInt64 {
        let parts = components
        guard parts.seconds >= 0, parts.attoseconds >= 0 else { return 0 }
        let (whole, overflow) = UInt64(parts.seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, carried) = whole.addingReportingOverflow(UInt64(parts.attoseconds / 1_000_000_000))
        return overflow || carried ? .max : sum
    }
}

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
