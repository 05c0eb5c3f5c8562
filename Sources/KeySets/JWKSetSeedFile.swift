internal import Glibc

/// The file that carries a key set over a restart: a plain JWK Set whose age is the time since it was last written.
struct JWKSetSeedFile: Sendable {
    let path: String
    let byteLimit: Int

    struct Contents {
        let bytes: [UInt8]
        let age: Duration
    }

    /// What the file holds; nil when there is none.
    func read() throws(JWKSetSourceError) -> Contents? {
        try KeySetFile.read(path: path, byteLimit: byteLimit).map { Contents(bytes: $0.bytes, age: $0.age) }
    }

    /// Replaces the file as a whole: a crash at any moment leaves the old one or the new one, never a part.
    func write(_ bytes: [UInt8]) throws(JWKSetSourceError) {
        // In the same directory, for a rename does not cross file systems.
        let temporary = "\(path).\(getpid()).new"
        _ = unsafe unlink(temporary)
        let file = unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard file >= 0 else { throw KeySetFile.failure("cannot create \(temporary)") }
        let isWritten = Self.writeAll(bytes, to: file) && fsync(file) == 0
        let failure = isWritten ? nil : KeySetFile.failure("cannot write \(temporary)")
        let isClosed = close(file) == 0
        if let failure {
            _ = unsafe unlink(temporary)
            throw failure
        }
        guard isClosed, unsafe rename(temporary, path) == 0 else {
            let failure = KeySetFile.failure("cannot replace the file")
            _ = unsafe unlink(temporary)
            throw failure
        }
        try syncDirectory()
    }

    // Only now does the new name survive a power failure.
    private func syncDirectory() throws(JWKSetSourceError) {
        let directory = unsafe open(Self.directory(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw KeySetFile.failure("cannot open the directory") }
        defer { _ = close(directory) }
        guard fsync(directory) == 0 else { throw KeySetFile.failure("cannot sync the directory") }
    }

    private static func directory(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: 0x2F) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private static func writeAll(_ bytes: [UInt8], to file: Int32) -> Bool {
        var written = 0
        while written < bytes.count {
            // Bounds: `written` < count, so the pointer and the rest lie within the array.
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.write(file, buffer.baseAddress.map { unsafe $0 + written }, buffer.count - written)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            written += count
        }
        return true
    }
}
