/// How much memory this process may use.
package enum MemoryLimit {
    /// What is wanted, cut to the limit of the process's control group.
    package static func allowed(of wanted: Int) -> Int {
        min(wanted, ofControlGroup(below: "/sys/fs/cgroup") ?? .max)
    }

    /// The least limit of the process's own control group and those above it; nil where none is seen.
    private static func ofControlGroup(below root: String) -> Int? {
        guard let groups = ProcessorCount.read("/proc/self/cgroup") else { return nil }
        guard var path = pathOfVersion2(groups) else {
            return ProcessorCount.read(root + "/memory/memory.limit_in_bytes").flatMap { parse($0) }
        }
        var least: Int?
        while true {
            if let text = ProcessorCount.read("\(root)\(path)/memory.max"), let limit = parse(text) {
                least = min(limit, least ?? limit)
            }
            guard let end = path.lastIndex(of: "/") else { return least }
            path = path[..<end]
        }
    }

    /// Reads `/proc/self/cgroup` (cgroups(7)): the path of version 2 stands in the one line `0::/system.slice/x.service`.
    package static func pathOfVersion2(_ text: [UInt8]) -> Substring? {
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
        guard let line = lines.first, line.hasPrefix("0::/") else { return nil }
        return line.dropFirst(line.hasSuffix("/") ? 4 : 3)
    }

    /// Reads `memory.max` or `memory.limit_in_bytes`; nil for `max` and for what stands for no limit.
    package static func parse(_ text: [UInt8]) -> Int? { ProcessorCount.number(text[...]) }
}
