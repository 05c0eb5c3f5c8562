#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Android)
internal import Android
#else
internal import Darwin
#endif

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
