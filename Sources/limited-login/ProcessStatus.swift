internal import Glibc
internal import VerificationService

/// What Linux says about this process.
enum ProcessStatus {
    /// Resident memory in bytes; 0 where /proc is not mounted.
    static func residentBytes() -> Int {
        guard let bytes = try? FileContents.read(path: "/proc/self/statm", limit: 4096) else { return 0 }
        // The second number is the resident set in pages (proc(5)).
        let numbers = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        guard numbers.count > 1, let pages = Int(numbers[1]) else { return 0 }
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }

    /// Number of open descriptors; 0 where /proc is not mounted.
    static func openDescriptors() -> Int {
        guard let directory = unsafe opendir("/proc/self/fd") else { return 0 }
        defer { unsafe closedir(directory) }
        var count = 0
        while unsafe readdir(directory) != nil { count += 1 }
        // Less ".", ".." and the directory's own descriptor.
        return max(0, count - 3)
    }
}
