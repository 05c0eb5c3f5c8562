internal import Dispatch
internal import LLBytes
internal import LLJOSE

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Android)
internal import Android
#else
internal import Darwin
#endif

/// Key sets in files: a source's file, and the seed file that keeps a set over a restart. A file's age is the time
/// since it was last written.
enum KeySetFile {
    /// The contents of a bounded regular file, and the time since its last change by the wall clock; nil if there is none.
    static func load(path: String, limit: Int = .max) throws(JWKSetSourceError) -> (bytes: [UInt8], age: Duration)? {
        do throws(FileContents.Failure) {
            let limit = min(limit, JWKSet.Limits.byteCount)
            let (bytes, changedAt) = try FileContents.readRegular(path: path, limit: limit)
            return (bytes, age(of: changedAt, at: time(nil)))
        } catch {
            if error.isMissing { return nil }
            throw JWKSetSourceError(error.reason)
        }
    }

    /// Replaces the file as a whole: a crash at any moment leaves the old one or the new one, never a part. If the path
    /// is a symbolic link, the file behind it is replaced and the link stays.
    static func save(_ bytes: [UInt8], to path: String) throws(JWKSetSourceError) {
        let path = try target(of: path)
        // It is in the same directory, because a rename does not cross file systems. Its name is unique to this write:
        // processes in containers share a volume and have the same process ids.
        let temporary = "\(path).\(String(UInt64.random(in: 0 ... .max), radix: 16)).new"
        let file = unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard file >= 0 else { throw failure("cannot create \(temporary)") }
        var count = 0
        while count < bytes.count {
            // The pointer and the count are those of the rest of the array.
            let written = unsafe bytes[count...].withUnsafeBytes { unsafe write(file, $0.baseAddress, $0.count) }
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { break }
            count += written
        }
        let isWritten = count == bytes.count && fsync(file) == 0
        var failure = isWritten ? nil : failure("cannot write \(temporary)")
        let isClosed = close(file) == 0
        if isWritten, unsafe !isClosed || rename(temporary, path) != 0 {
            failure = Self.failure("cannot replace the file")
        }
        if let failure {
            _ = unsafe unlink(temporary)
            throw failure
        }
    }

    /// The path without symbolic links, if its last part is one.
    private static func target(of path: String) throws(JWKSetSourceError) -> String {
        var information = stat()
        guard unsafe lstat(path, &information) == 0, information.st_mode & S_IFMT == S_IFLNK else { return path }
        guard let resolved = unsafe realpath(path, nil) else { throw failure("cannot follow the symbolic link") }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    /// Time between two moments in seconds since 1970; zero if the file's is later.
    static func age(of changed: Int, at now: Int) -> Duration {
        // Neither is below 0, so the difference cannot overflow.
        .seconds(max(0, max(0, now) - max(0, changed)))
    }

    static func failure(_ what: String) -> JWKSetSourceError {
        let number = errno
        return JWKSetSourceError("\(what): \(SystemReason.sentence(for: number).lowercased())")
    }
}

extension JWKSetCache {
    /// Puts the seed file's keys in force if there are none yet, and reports that on the cache's queue, without
    /// waiting for the report. A missing file is not reported; a bad one is reported and left unchanged.
    func loadSeed() {
        guard let seedFile, published.epoch == 0, !storage.withLock({ $0.machine.isStopped }) else { return }
        do throws(JWKSetSourceError) {
            guard let seed = try KeySetFile.load(path: seedFile) else { return }
            guard seed.age < limits.maximumStaleness else {
                throw JWKSetSourceError("it is older than the maximum staleness")
            }
            let keySet = try judge(JWKSetDocument(bytes: seed.bytes))
            let now = clock()
            let isTaken = storage.withLock { storage in
                guard published.epoch == 0 else { return false }
                storage.machine.seed(age: seed.age, at: now)
                storage.bytes = seed.bytes
                publish(keySet, version: 1, source: seedFile, in: &storage)
                return true
            }
            guard isTaken else { return }
            queue.async {
                self.events(.seedLoaded(file: seedFile, age: seed.age))
                self.events(.keySetChange(from: JWKSet(keys: []), to: keySet, source: seedFile))
                self.announcePhase(at: now)
            }
        } catch { queue.async { self.events(.seedIgnored(file: seedFile, reason: error.reason)) } }
    }

    /// Keeps the current bytes for the next start, without waiting. The seed file's own queue makes one write at a
    /// time, and each writes the bytes that are in force when it begins. At most one waits behind a write that hangs.
    func writeSeed() {
        guard let seedFile else { return }
        let isQueued = seedIsQueued.withLock { isQueued in
            defer { isQueued = true }
            return isQueued
        }
        if isQueued { return events(.seedNotWritten(file: seedFile, reason: "the write before has not ended")) }
        seedQueue.async(group: seedWriting) {
            self.seedIsQueued.withLock { $0 = false }
            do throws(JWKSetSourceError) {
                try KeySetFile.save(self.storage.withLock { $0.bytes }, to: seedFile)
            } catch {
                let reason = error.reason
                self.queue.async { self.events(.seedNotWritten(file: seedFile, reason: reason)) }
            }
        }
    }

    /// Returns when the last write has ended, or after a second.
    func waitForSeedWrites() { _ = seedWriting.wait(timeout: .now() + .seconds(1)) }
}
