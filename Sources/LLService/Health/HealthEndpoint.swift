internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LLStores
internal import LimitedLogin
package import LimitedLoginKeys

/// Liveness and readiness are separate: an outage of the key source must not cause a living process to be killed.
enum HealthEndpoint {
    /// - Parameter readiness: True for readiness: the service has keys and is not stopping. False for liveness: the
    ///   process serves.
    static func answer(readiness: Bool) -> Route.Answer {
        { worker, exchange, bytes throws(Rejection) in
            let core = worker.core
            // Only the operators may see the state of the keys.
            let words: [StaticString] = ["verbose", "verbose=1", "verbose=true"]
            let isAsked = exchange.head.query.map { query in words.contains { bytes.equal(query, $0) } } ?? false
            let isVerbose = isAsked && worker.listener == .administration
            if readiness {
                guard !core.isDraining else { throw Rejection(.draining, "The service is stopping.") }
                guard core.cache.snapshot.isUsable(at: exchange.context.now) else {
                    let reason = isVerbose ? core.cache.status.lastError.map { ": \($0)" } ?? "" : ""
                    throw Rejection(.keysUnavailable, "No usable keys\(reason).")
                }
                guard core.revocations.isKnown else {
                    guard isVerbose, case .redis(let redis) = core.replayStore, let cause = redis.failure else {
                        throw TokenJudge.unknownRevocations
                    }
                    throw Rejection(.replayStoreUnavailable, "No revocations were read since the start: \(cause).")
                }
            } else if worker.listener == .administration, let name = core.stuckThread(exchange.context.now) {
                throw Rejection(.overloaded, "The thread \(name) has not turned for 10 s.")
            }
            exchange.response.addField("Cache-Control: no-store")
            if isVerbose {
                exchange.response.addField("Content-Type: application/json")
                HealthReport.write(core, to: &exchange.response.body)
            } else {
                exchange.response.addField("Content-Type: text/plain; charset=utf-8")
                JSONWriter.raw("ok\n", to: &exchange.response.body)
            }
            return .done()
        }
    }
}

/// The answer to `/readyz?verbose` on the administrative listener, for a person with doubts about the keys.
package enum HealthReport {
    static func write(_ core: ServiceCore, to bytes: inout [UInt8]) {
        let (status, store, isDraining) = (core.cache.status, core.replayStore, core.isDraining)
        let isReady = status.isUsable && store.revocations.isKnown && !isDraining
        JSONWriter.raw("{", to: &bytes)
        JSONWriter.member("status", isReady ? "pass" : "fail", to: &bytes)
        JSONWriter.member("draining", isDraining, to: &bytes)
        JSONWriter.name("keys", to: &bytes)
        writeKeys(status, to: &bytes)
        // Tokens with another binding are judged without the store, so its state is shown but fails nothing.
        JSONWriter.name("replay_store", to: &bytes)
        JSONWriter.raw("{", to: &bytes)
        JSONWriter.member("state", store.isUp ? "up" : "down", to: &bytes)
        switch store {
        case .memory(let memory):
            JSONWriter.member("kind", "memory", to: &bytes)
            JSONWriter.member("entries", memory.count, to: &bytes)
            JSONWriter.member("capacity", memory.capacity, to: &bytes)
        case .redis(let redis):
            JSONWriter.member("kind", "redis", to: &bytes)
            JSONWriter.member("last_error", redis.failure?.description, to: &bytes)
        }
        JSONWriter.raw("},\"revocations\":{", to: &bytes)
        JSONWriter.member("entries", store.revocations.count, to: &bytes)
        JSONWriter.member("capacity", store.revocations.capacity, to: &bytes)
        // When the list may have become incomplete; absent if it was never read.
        seconds("age_seconds", store.revocations.age(at: MonotonicClock.now()), to: &bytes)
        JSONWriter.raw("}}\n", to: &bytes)
    }

    /// Writes the state of the key cache alone, as `limited-login keys --json` prints it.
    package static func writeKeys(_ status: JWKSetCacheStatus, to bytes: inout [UInt8]) {
        JSONWriter.raw("{", to: &bytes)
        JSONWriter.member("state", status.phase.rawValue, to: &bytes)
        JSONWriter.member("source", status.source, to: &bytes)
        seconds("age_seconds", status.age, to: &bytes)
        seconds("expires_in_seconds", status.untilExpiry, to: &bytes)
        seconds("unusable_in_seconds", status.untilUnusable, to: &bytes)
        JSONWriter.member("last_error", status.lastError, to: &bytes)
        JSONWriter.name("keys", to: &bytes)
        JSONWriter.array(status.keys, to: &bytes) { key, bytes in
            JSONWriter.raw("{", to: &bytes)
            JSONWriter.member("kid", key.keyID, to: &bytes)
            JSONWriter.member("bits", key.modulusBitCount, to: &bytes)
            JSONWriter.member("thumbprint", key.thumbprint, to: &bytes)
            JSONWriter.raw("}", to: &bytes)
        }
        JSONWriter.raw("}", to: &bytes)
    }

    private static func seconds(_ name: StaticString, _ duration: Duration?, to bytes: inout [UInt8]) {
        JSONWriter.member(name, duration.map { Int(clamping: $0.components.seconds) }, to: &bytes)
    }
}
