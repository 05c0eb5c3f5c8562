internal import Glibc

/// Reads a whole small file; every failure is a sentence with the system's own reason.
package enum FileContents {
    /// Why a file could not be read.
    package struct Failure: Error, Sendable, Equatable {
        /// The system's reason, such as "No such file or directory".
        package let reason: String
        /// Whether there is no such file, as against one that cannot be read.
        package let isMissing: Bool
    }

    /// The bytes of the file at `path`.
    ///
    /// - Parameter limit: the greatest size, in bytes; a larger file is refused rather than read.
    package static func read(path: String, limit: Int) throws(Failure) -> [UInt8] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure() }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while true {
            // The buffer is the array's own storage and its own count.
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                guard errno == EINTR else { throw failure() }
                continue
            }
            guard count > 0 else { return bytes }
            guard bytes.count + count <= limit else {
                throw Failure(reason: "the file is larger than \(limit) bytes", isMissing: false)
            }
            bytes.append(contentsOf: chunk[..<count])
        }
    }

    private static func failure() -> Failure {
        let number = errno
        // strerror answers a constant or thread-local NUL-terminated text, copied here at once.
        let text = unsafe strerror(number)
        let reason = unsafe text.map { unsafe String(cString: $0) } ?? "error \(number)"
        return Failure(reason: reason, isMissing: number == ENOENT)
    }
}
