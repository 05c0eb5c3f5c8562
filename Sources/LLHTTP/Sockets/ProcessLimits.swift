internal import CLLSystem

package enum ProcessLimits {
    /// The processors of the affinity mask, cut to the control group's quota; 1 to 192. Dispatch has at most 255 threads,
    /// and each worker keeps one.
    package static func processorCount() -> Int {
        max(1, min(Int(platform_allowed_processors()), ControlGroup().processorCount ?? .max, 192))
    }

    /// Gives Dispatch's threads stacks of 1 MiB in place of the limit of the process, which may be 64 KiB or 8 MiB. Below
    /// 2 MiB, an older kernel does not back a whole stack with one huge page. The main thread calls it first.
    package static func setStackSize() { platform_set_stack_size(1 << 20) }

    /// The wanted memory in bytes, cut to the control group's limit.
    package static func memory(of wanted: Int) -> Int { min(wanted, ControlGroup().memory ?? .max) }

    /// Raises the number of descriptors that the process may open to the greatest allowed.
    /// - Returns: The new number; 1,024, the usual one, if the system does not tell.
    package static func raiseDescriptorLimit() -> Int {
        let limit = platform_raise_descriptor_limit()
        return limit < 0 ? 1_024 : Int(limit)
    }
}

package enum ProcessArguments {
    /// The program's name and its arguments. `CommandLine` has none if /proc is not mounted, or if a preloaded library,
    /// such as a tracing agent, has changed the environment before `main`.
    package static func all() -> [String] {
        var found: [String] = []
        // The text ends in NUL and is there as long as the process.
        while let argument = unsafe platform_argument(Int32(clamping: found.count)) {
            found.append(unsafe String(cString: argument))
        }
        return found.isEmpty ? CommandLine.arguments : found
    }
}

/// The limits of the process's control group and of the groups above it (cgroups(7)).
package struct ControlGroup {
    private let root: String
    private let path: Substring

    /// - Parameter root: The directory of the mounted control groups (version 2).
    package init(root: String = "/sys/fs/cgroup", membership: String = "/proc/self/cgroup") {
        self.root = root
        // `0::/system.slice/x.service`.
        let line = Self.read(membership)?.split(separator: "\n").last { $0.hasPrefix("0::/") } ?? "0::/"
        path = line.dropFirst(line.hasSuffix("/") ? 4 : 3)
    }

    package var memory: Int? { least(of: "memory.max") { Self.number($0) } }

    /// The processor limit in whole processors, rounded up; nil if there is none.
    package var processorCount: Int? {
        // `150000 100000`: the quota of each period, in microseconds; `max` for no quota.
        least(of: "cpu.max") { text in
            let parts = text.split(separator: " ").map(Self.number)
            guard parts.count == 2, let quota = parts[0], let period = parts[1] else { return nil }
            return (quota + period - 1) / period
        }
    }

    /// The least limit in files of this name, from the group up to the root.
    private func least(of file: String, _ limit: (Substring) -> Int?) -> Int? {
        var least: Int?
        var path = path
        while true {
            if let found = Self.read("\(root)\(path)/\(file)").flatMap(limit) { least = min(found, least ?? found) }
            guard let end = path.lastIndex(of: "/") else { return least }
            path = path[..<end]
        }
    }

    /// Nil for `max`, and for a number beyond any machine's.
    private static func number(_ digits: Substring) -> Int? {
        digits.utf8.count <= 15 ? Int(digits).flatMap { $0 > 0 ? $0 : nil } : nil
    }

    private static func read(_ path: String) -> Substring? {
        let bytes = try? FileContents.read(path: path, limit: 4_096)
        return bytes.map { String(decoding: $0, as: UTF8.self) }.map { $0.last == "\n" ? $0.dropLast() : $0[...] }
    }
}
