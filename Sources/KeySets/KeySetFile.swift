internal import Dispatch
internal import Glibc
internal import JOSE
internal import Sockets

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
        // In the same directory, for a rename does not cross file systems. Its name is this write's own: processes in
        // containers share a volume and have the same numbers.
        let temporary = "\(path).\(String(UInt64.random(in: 0 ... .max), radix: 16)).new"
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

extension JWKSetCache {
    /// Puts the seed file's keys in force if there are none yet, and tells of it on the queue, for which it does not wait.
    /// A missing file is no news; a bad one is reported and left alone.
    func loadSeed() {
        guard let seedFile, published.epoch == 0, !storage.withLock({ $0.machine.isStopped }) else { return }
        do throws(JWKSetSourceError) {
            guard let seed = try seedFile.read() else { return }
            guard seed.age < limits.maximumStaleness else {
                throw JWKSetSourceError("it is older than the maximum staleness")
            }
            let keySet = try judge(JWKSetDocument(bytes: seed.bytes))
            let now = clock()
            let isTaken = storage.withLock { storage in
                guard published.epoch == 0 else { return false }
                storage.machine.seed(age: seed.age, at: now)
                storage.ageWhenPublished = seed.age
                storage.bytes = seed.bytes
                publish(keySet, version: 1, source: seedFile.path, in: &storage, at: now)
                return true
            }
            guard isTaken else { return }
            queue.async {
                self.events(.seedLoaded(file: seedFile.path, age: seed.age))
                self.events(KeySetChange(from: JSONWebKeySet(keys: []), to: keySet).event(source: seedFile.path))
                self.announcePhase(at: now)
            }
        } catch {
            queue.async { self.events(.seedIgnored(file: seedFile.path, reason: error.reason)) }
        }
    }

    /// Keeps the bytes in force for the next start.
    func writeSeed(_ bytes: [UInt8]) {
        guard let seedFile, !bytes.isEmpty else { return }
        do {
            try seedFile.write(bytes)
        } catch {
            events(.seedNotWritten(file: seedFile.path, reason: error.reason))
        }
    }
}

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
        return Contents(
            bytes: bytes,
            age: age(of: information.st_mtim.tv_sec, at: time(nil)),
            version: version(of: information)
        )
    }

    /// Changes whenever the file of these facts is written or replaced.
    static func version(of information: stat) -> String {
        let (changed, altered) = (information.st_mtim, information.st_ctim)
        // Network and layered file systems may use all 64 bits, which is beyond the greatest Int.
        let number = Int(bitPattern: information.st_ino)
        return [
            number, Int(information.st_size), changed.tv_sec, changed.tv_nsec, altered.tv_sec, altered.tv_nsec,
        ].map { String($0) }.joined(separator: "-")
    }

    /// Time between two moments in seconds since 1970; zero when the file's lies ahead.
    static func age(of changed: Int, at now: Int) -> Duration {
        // Neither is below 0, so the difference cannot overflow.
        .seconds(max(0, max(0, now) - max(0, changed)))
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
