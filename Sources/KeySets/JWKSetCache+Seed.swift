internal import JOSE
internal import Sockets

extension JWKSetCache {
    /// Puts the seed file's keys in force. A missing file is no news; a bad one is reported and left alone.
    func loadSeed() {
        guard let seedFile else { return }
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
            events(.seedLoaded(file: seedFile.path, age: seed.age))
            events(KeySetChange(from: JSONWebKeySet(keys: []), to: keySet).event(source: seedFile.path))
            announcePhase(at: now)
        } catch {
            events(.seedIgnored(file: seedFile.path, reason: error.reason))
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
