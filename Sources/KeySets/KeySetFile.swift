internal import Glibc

/// Reads a bounded regular file with its age.
enum KeySetFile {
    struct Contents {
        let bytes: [UInt8]
        /// Time since the last change by the wall clock; zero when that lies in the future.
        let age: Duration
        /// Changes whenever the file is written or replaced.
        let version: String
    }

    /// The file's contents; nil when there is none.
    static func read(path: String, byteLimit: Int) throws(JWKSetSourceError) -> Contents? {
        // O_NONBLOCK: a FIFO in the file's place must not hold the caller.
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw failure("cannot open the file")
        }
        defer { _ = close(file) }
        var information = stat()
        guard unsafe fstat(file, &information) == 0 else { throw failure("cannot read the file") }
        guard information.st_mode & S_IFMT == S_IFREG else { throw JWKSetSourceError("it is not a regular file") }
        var bytes = [UInt8](repeating: 0, count: byteLimit + 1)
        let count = try fill(&bytes, from: file)
        guard count <= byteLimit else { throw JWKSetSourceError("it is larger than \(byteLimit) bytes") }
        bytes.removeLast(bytes.count - count)
        let changed = information.st_mtim
        let now = time(nil)
        let version = [
            Int(information.st_ino), Int(information.st_size), changed.tv_sec, changed.tv_nsec,
            information.st_ctim.tv_sec, information.st_ctim.tv_nsec,
        ].map { String($0) }.joined(separator: "-")
        return Contents(bytes: bytes, age: .seconds(max(0, now - changed.tv_sec)), version: version)
    }

    /// The system's reason for what just failed.
    static func failure(_ what: String) -> JWKSetSourceError {
        guard let text = unsafe strerror(errno) else { return JWKSetSourceError(what) }
        return unsafe JWKSetSourceError("\(what): \(String(cString: text).lowercased())")
    }

    private static func fill(_ bytes: inout [UInt8], from file: Int32) throws(JWKSetSourceError) -> Int {
        var filled = 0
        while filled < bytes.count {
            // Bounds: `filled` < count, so the pointer and the rest lie within the array.
            let count = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(file, buffer.baseAddress.map { unsafe $0 + filled }, buffer.count - filled)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw failure("cannot read the file") }
            if count == 0 { break }
            filled += count
        }
        return filled
    }
}
