internal import CSystemCalls

/// What an epoll set reported last, in memory that is used again and again.
package struct ReadyEvents {
    /// What to be told about a descriptor, and what was told: the bits of epoll_ctl(2).
    package enum Bits {
        package static let readable = UInt32(PLATFORM_READABLE)
        package static let writable = UInt32(PLATFORM_WRITABLE)
        package static let error = UInt32(PLATFORM_ERROR)
        package static let hangUp = UInt32(PLATFORM_HANG_UP)
        package static let readHangUp = UInt32(PLATFORM_READ_HANG_UP)
        /// Of several sets that wait for the same descriptor, one is woken.
        package static let exclusive = UInt32(PLATFORM_EXCLUSIVE)
    }

    var events: [platform_event]

    /// Has room for so many reports at a time.
    package init(capacity: Int) {
        events = Array(repeating: platform_event(), count: capacity)
    }

    /// How many reports there is room for.
    package var capacity: Int { events.count }

    /// The report at `position`, which must be below ``capacity``.
    package subscript(position: Int) -> (tag: UInt64, bits: UInt32) {
        (events[position].tag, events[position].events)
    }
}
