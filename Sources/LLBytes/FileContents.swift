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
        let descriptor = try allowingPipe ? openAny(path, O_RDONLY | O_CLOEXEC) : openRegular(path).descriptor
        defer { _ = close(descriptor) }
        if mustBeOwn { try requireOwn(descriptor) }
        return try readAll(descriptor, limit)
    }

    /// The bytes of a regular file, and the second of its last change since 1970.
    package static func readRegular(path: String, limit: Int) throws(Failure) -> (bytes: [UInt8], changedAt: Int) {
        let (descriptor, facts) = try openRegular(path)
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
    package static func requireRegular(path: String) throws(Failure) { _ = close(try openRegular(path).descriptor) }

    /// Opens without waiting for a pipe's writer, and refuses anything but a regular file.
    private static func openRegular(_ path: String) throws(Failure) -> (descriptor: Int32, facts: stat) {
        let descriptor = try openAny(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        var facts = stat()
        guard unsafe fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else {
            _ = close(descriptor)
            throw Failure(reason: "it is not a regular file", isMissing: false)
        }
        return (descriptor, facts)
    }

    /// Refuses a file that others own or can change. A group may have write access only if its number equals the
    /// owner's: many systems give each user a group of their own and create files with mode 0664.
    private static func requireOwn(_ descriptor: Int32) throws(Failure) {
        var information = stat()
        guard unsafe fstat(descriptor, &information) == 0 else { throw failure() }
        guard information.st_uid == geteuid() || information.st_uid == 0 else {
            throw Failure(reason: "it belongs to another user", isMissing: false)
        }
        let groupIsOwners = information.st_gid == information.st_uid
        guard information.st_mode & (groupIsOwners ? 0o002 : 0o022) == 0 else {
            throw Failure(reason: "others can change it", isMissing: false)
        }
    }

    private static func openAny(_ path: String, _ flags: Int32) throws(Failure) -> Int32 {
        let descriptor = unsafe open(path, flags)
        guard descriptor >= 0 else { throw failure() }
        return descriptor
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
