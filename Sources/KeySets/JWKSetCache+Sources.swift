internal import JOSE
internal import Sockets

/// A source's good answer: a set with at least one usable key, or word that the last one stands.
struct SourceAnswer {
    let sourceIndex: Int
    let sourceName: String
    let freshness: JWKSetFreshness
    /// Nil for 304.
    let keySet: JSONWebKeySet?
    /// Nil for 304.
    let document: JWKSetDocument?
}

/// No source gave a good answer.
struct SourcesFailure: Error {
    /// The last source's sentence.
    let reason: String
    /// The shortest time that a source asked to be left alone for, if every failed source asked.
    let retryAfterSeconds: Int?
}

extension JWKSetCache {
    /// Asks one source after the other until one gives a usable set.
    func askSources(for reason: JWKSetEvent.Reason) -> Result<SourceAnswer, SourcesFailure> {
        let (current, validator) = storage.withLock { ($0.currentSource, $0.validator) }
        var retryAfter: Int? = .max
        var lastReason = ""
        for index in order(for: reason, current: current) {
            if storage.withLock({ $0.machine.isStopped }) { break }
            do {
                return .success(try ask(index, validator: index == current ? validator : nil))
            } catch {
                events(.sourceFailed(source: sources[index].name, reason: error.reason))
                lastReason = "\(sources[index].name): \(error.reason)"
                retryAfter = retryAfter.flatMap { shortest in error.retryAfterSeconds.map { min(shortest, $0) } }
            }
        }
        if lastReason.isEmpty { lastReason = "the cache was stopped" }
        return .failure(SourcesFailure(reason: lastReason, retryAfterSeconds: retryAfter == .max ? nil : retryAfter))
    }

    /// The configured order; but when requests wait for the answer, the source that answered last goes first.
    private func order(for reason: JWKSetEvent.Reason, current: Int?) -> [Int] {
        guard reason == .unknownKeyID, let current else { return Array(sources.indices) }
        return [current] + sources.indices.filter { $0 != current }
    }

    private func ask(_ index: Int, validator: String?) throws(JWKSetSourceError) -> SourceAnswer {
        let source = sources[index]
        switch try source.fetch(validator: validator) {
        case .notModified(let freshness):
            // Only a request that carried a validator can be answered so (RFC 9110, 15.4.5).
            guard validator != nil else { throw JWKSetSourceError("not modified, although nothing was held") }
            return SourceAnswer(
                sourceIndex: index,
                sourceName: source.name,
                freshness: freshness,
                keySet: nil,
                document: nil
            )
        case .fetched(let document):
            let keySet = try judge(document)
            return SourceAnswer(
                sourceIndex: index,
                sourceName: source.name,
                freshness: document.freshness,
                keySet: keySet,
                document: document
            )
        }
    }

    /// A set that would leave nothing to verify with is a failure of its source: good keys stay.
    func judge(_ document: JWKSetDocument) throws(JWKSetSourceError) -> JSONWebKeySet {
        guard document.bytes.count <= limits.keySetBytes else {
            throw JWKSetSourceError("the answer is larger than \(limits.keySetBytes) bytes")
        }
        let keySet: JSONWebKeySet
        do {
            keySet = try JSONWebKeySet(parsing: document.bytes.span)
        } catch {
            throw JWKSetSourceError(error.description)
        }
        guard !keySet.keys.isEmpty else { throw JWKSetSourceError("the JWK Set holds no usable key") }
        return keySet
    }
}
