internal import CSystemCalls

/// How many processors this process may use.
package enum ProcessorCount {
    /// The processors of the affinity mask, cut to the cgroup's quota (a part of one counts as one); at least 1.
    package static func allowed() -> Int {
        let inMask = max(1, Int(platform_allowed_processors()))
        guard let quota = quota() else { return inMask }
        return max(1, min(inMask, quota))
    }

    /// The quota of the process's own control group, where it is mounted at the usual place (as it is in a container).
    private static func quota() -> Int? {
        if let text = read("/sys/fs/cgroup/cpu.max") { return parse(version2: text) }
        guard let quota = read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
            let period = read("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
        else { return nil }
        return processors(quota: number(quota[...]), period: number(period[...]))
    }

    /// Reads `cpu.max`: `max 100000` or `150000 100000`, in microseconds.
    package static func parse(version2 text: [UInt8]) -> Int? {
        let parts = text.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\n") }
        guard parts.count == 2 else { return nil }
        return processors(quota: number(parts[0]), period: number(parts[1]))
    }

    /// Whole processors, rounded up; nil where there is no limit.
    private static func processors(quota: Int?, period: Int?) -> Int? {
        guard let quota, let period, quota > 0, period > 0 else { return nil }
        return quota / period + (quota % period == 0 ? 0 : 1)
    }

    static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        var value = 0
        var count = 0
        for byte in digits where byte != UInt8(ascii: "\n") {
            // 15 digits cannot overflow; `-1` and `max` are no numbers.
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9"), count < 15 else { return nil }
            value = value * 10 + Int(byte - UInt8(ascii: "0"))
            count += 1
        }
        return count > 0 ? value : nil
    }

    static func read(_ path: String) -> [UInt8]? {
        let number = unsafe path.withCString { unsafe platform_open_for_reading($0) }
        guard number >= 0 else { return nil }
        let descriptor = FileDescriptor(takingOwnershipOf: number)
        var buffer = [UInt8](repeating: 0, count: 256)
        // The system writes at most `count` bytes from the base address on, which is the whole array.
        let count = unsafe buffer.withUnsafeMutableBytes { bytes in
            unsafe platform_read(descriptor.number, bytes.baseAddress, bytes.count)
        }
        guard count >= 0, count <= buffer.count else { return nil }
        return Array(buffer[..<count])
    }
}
