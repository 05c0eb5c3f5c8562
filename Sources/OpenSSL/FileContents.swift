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
    /// - Parameters:
    ///   - limit: the greatest size, in bytes; a larger file is refused rather than read.
    ///   - allowingPipe: whether a pipe may stand in the file's place, as in `--token-file <(…)`; the call then waits
    ///     for its writer. A setting's file is refused where it is a pipe: it is read again at a
    ///     reload, which no writer may hold up.
    ///   - mustBeOwn: whether a file is refused that another user than this one and root owns or can change.
    package static func read(
        path: String,
        limit: Int,
        allowingPipe: Bool = false,
        mustBeOwn: Bool = false
    ) throws(Failure) -> [UInt8] {
        let descriptor = try allowingPipe ? openAny(path, O_RDONLY | O_CLOEXEC) : openRegular(path)
        defer { close(descriptor) }
        if mustBeOwn { try requireOwn(descriptor) }
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

    /// Finds that a regular file can be read at `path`: for files that OpenSSL opens itself, which would wait at a pipe.
    package static func requireRegular(path: String) throws(Failure) { close(try openRegular(path)) }

    /// Opens without waiting for a pipe's writer, and refuses what is no regular file.
    private static func openRegular(_ path: String) throws(Failure) -> Int32 {
        let descriptor = try openAny(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        var information = stat()
        guard unsafe fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw Failure(reason: "it is not a regular file", isMissing: false)
        }
        return descriptor
    }

    /// Refuses a file that others own or can change. A group may change it only where it bears its owner's number: many
    /// systems make each user a group of their own, and files with mode 0664.
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

    private static func failure() -> Failure {
        let number = errno
        return Failure(reason: SystemReason.sentence(for: number), isMissing: number == ENOENT)
    }
}

/// The system's own words for an error number, such as "No such file or directory".
package enum SystemReason {
    package static func sentence(for number: Int32) -> String {
        // `strerror` answers a constant or thread-local text that ends in NUL; it is copied at once.
        guard let text = unsafe strerror(number) else { return "error \(number)" }
        return unsafe String(cString: text)
    }
}
