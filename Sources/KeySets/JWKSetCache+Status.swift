internal import JOSE
internal import OpenSSL
internal import Sockets

extension JWKSetCache {
    /// What the cache is and has done, at this moment.
    public var status: JWKSetCacheStatus {
        let now = clock()
        let (storage, snapshot) = storage.withLock { ($0, published.value) }
        let holds = snapshot.epoch > 0
        var untilNextAttempt: Duration?
        var isFetching = false
        switch storage.machine.fetch {
        case .idle: break
        case .underWay: isFetching = true
        case .backingOff(let until): untilNextAttempt = until.duration(since: now)
        }
        return JWKSetCacheStatus(
            phase: storage.machine.phase(at: now),
            isUsable: snapshot.isUsable(at: now),
            isFetching: isFetching,
            keys: snapshot.keySet.keys.map(JWKSetCacheStatus.Key.init),
            ignoredKeys: snapshot.keySet.ignoredKeys.map(JWKSetCacheStatus.IgnoredKey.init),
            source: snapshot.source,
            age: holds ? storage.ageWhenPublished + now.duration(since: snapshot.fetchedAt) : nil,
            untilExpiry: holds ? Self.time(from: now, to: snapshot.expiresAt) : nil,
            untilUnusable: holds ? Self.time(from: now, to: snapshot.usableUntil) : nil,
            untilNextAttempt: untilNextAttempt,
            consecutiveFailures: storage.machine.consecutiveFailures,
            lastError: storage.lastError,
            counters: storage.counters
        )
    }

    private static func time(from now: MonotonicInstant, to later: MonotonicInstant) -> Duration {
        now <= later ? later.duration(since: now) : .zero - now.duration(since: later)
    }
}

extension JWKSetCacheStatus.Key {
    init(_ key: JSONWebKey) {
        id = key.keyID
        bits = key.modulusBitCount
        thumbprint = Self.thumbprint(of: key)
    }

    /// RFC 7638: base64url of the SHA-256 of the key's canonical JSON. Empty only when OpenSSL has no memory left.
    private static func thumbprint(of key: JSONWebKey) -> String {
        guard let digest = try? SHA256.digest(of: key.thumbprintInput.span) else { return "" }
        return String(decoding: digest.base64URL, as: UTF8.self)
    }
}

extension JSONWebKey {
    /// Bits of the modulus, whose first byte is never zero.
    var modulusBitCount: Int {
        guard let first = modulus.first else { return 0 }
        return modulus.count * 8 - first.leadingZeroBitCount
    }
}

extension JWKSetCacheStatus.IgnoredKey {
    init(_ key: JSONWebKeySet.IgnoredKey) {
        index = key.index
        id = key.keyID
        reason = key.reason.description
    }
}
