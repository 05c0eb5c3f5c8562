internal import Bytes
internal import HTTP1
internal import HTTPServer
package import KeySets
package import LoginStores
internal import Sockets

/// Liveness and readiness, apart: an outage of the key source must not get a living process killed.
final class HealthEndpoint: Endpoint {
    /// What is asked about.
    enum Subject {
        /// Whether the process serves.
        case process
        /// Whether it has keys and is not stopping.
        case readiness
    }

    private let core: ServiceCore
    private let listener: ListenerRole
    private let subject: Subject

    init(_ parts: WorkerParts, of subject: Subject) {
        core = parts.core
        listener = parts.listener
        self.subject = subject
    }

    func answer(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        body: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        // The state of the keys is the operators' alone.
        let isVerbose = listener == .administration && Self.isVerbose(head, bytes)
        if subject == .readiness {
            guard !core.isDraining else { throw Problem(.draining, "The service is stopping.") }
            guard core.cache.snapshot.isUsable(at: context.now) else {
                let reason = isVerbose ? core.cache.status.lastError.map { ": \($0)" } ?? "" : ""
                throw Problem(.keysUnavailable, "No usable keys\(reason).")
            }
            guard core.revocations.isKnown else { throw TokenJudge.unknownRevocations }
        }
        response.addField("Cache-Control: no-store")
        if isVerbose {
            response.addField("Content-Type: application/json")
            HealthReport.write(core.cache.status, core.replayStore, isDraining: core.isDraining, to: &response.body)
        } else {
            response.addField("Content-Type: text/plain; charset=utf-8")
            JSONWriter.raw("ok\n", to: &response.body)
        }
        return .done
    }

    private static func isVerbose(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Bool {
        guard let query = head.query else { return false }
        return bytes.equal(query, "verbose") || bytes.equal(query, "verbose=1") || bytes.equal(query, "verbose=true")
    }
}

/// The answer to `/readyz?verbose` on the administrative listener: what a person asks when the keys are in doubt.
package enum HealthReport {
    /// Writes the state of the keys and of the service as one JSON object.
    package static func write(
        _ status: JWKSetCacheStatus,
        _ store: ReplayStore,
        isDraining: Bool,
        to bytes: inout [UInt8]
    ) {
        let isReady = status.isUsable && store.revocations.isKnown && !isDraining
        JSONWriter.raw("{", to: &bytes)
        JSONWriter.member("status", isReady ? "pass" : "fail", to: &bytes)
        JSONWriter.raw(isDraining ? ",\"draining\":true" : ",\"draining\":false", to: &bytes)
        JSONWriter.raw(",\"keys\":", to: &bytes)
        writeKeys(status, to: &bytes)
        JSONWriter.raw(",\"replay_store\":", to: &bytes)
        write(store, to: &bytes)
        JSONWriter.raw(",\"revocations\":", to: &bytes)
        write(store.revocations, to: &bytes)
        JSONWriter.raw("}\n", to: &bytes)
    }

    /// How many there are, and since when they may not be all; no age where they were never read.
    private static func write(_ revocations: Revocations, to bytes: inout [UInt8]) {
        JSONWriter.raw("{\"entries\":", to: &bytes)
        JSONWriter.integer(revocations.count, to: &bytes)
        JSONWriter.raw(",\"capacity\":", to: &bytes)
        JSONWriter.integer(revocations.capacity, to: &bytes)
        seconds(",\"age_seconds\":", revocations.age(at: MonotonicClock.now()), to: &bytes)
        JSONWriter.raw("}", to: &bytes)
    }

    /// Tokens bound otherwise are judged without the store, so that its state is told and fails nothing.
    private static func write(_ store: ReplayStore, to bytes: inout [UInt8]) {
        JSONWriter.raw("{", to: &bytes)
        JSONWriter.member("state", store.isUp ? "up" : "down", to: &bytes)
        JSONWriter.raw(",", to: &bytes)
        switch store {
        case .memory(let memory):
            JSONWriter.member("kind", "memory", to: &bytes)
            JSONWriter.raw(",\"entries\":", to: &bytes)
            JSONWriter.integer(memory.count(at: WallClock.unixMilliseconds()), to: &bytes)
            JSONWriter.raw(",\"capacity\":", to: &bytes)
            JSONWriter.integer(memory.capacity, to: &bytes)
        case .redis: JSONWriter.member("kind", "redis", to: &bytes)
        }
        JSONWriter.raw("}", to: &bytes)
    }

    /// Writes the state of the key cache alone, as `limited-login keys --json` prints it.
    package static func writeKeys(_ status: JWKSetCacheStatus, to bytes: inout [UInt8]) {
        JSONWriter.raw("{", to: &bytes)
        JSONWriter.member("state", status.phase.rawValue, to: &bytes)
        if let source = status.source {
            JSONWriter.raw(",", to: &bytes)
            JSONWriter.member("source", source, to: &bytes)
        }
        seconds(",\"age_seconds\":", status.age, to: &bytes)
        seconds(",\"expires_in_seconds\":", status.untilExpiry, to: &bytes)
        seconds(",\"unusable_in_seconds\":", status.untilUnusable, to: &bytes)
        if let error = status.lastError {
            JSONWriter.raw(",", to: &bytes)
            JSONWriter.member("last_error", error, to: &bytes)
        }
        JSONWriter.raw(",\"keys\":[", to: &bytes)
        for (index, key) in status.keys.enumerated() {
            JSONWriter.raw(index == 0 ? "{" : ",{", to: &bytes)
            JSONWriter.member("kid", key.id, to: &bytes)
            JSONWriter.raw(",\"bits\":", to: &bytes)
            JSONWriter.integer(key.bits, to: &bytes)
            JSONWriter.raw(",", to: &bytes)
            JSONWriter.member("thumbprint", key.thumbprint, to: &bytes)
            JSONWriter.raw("}", to: &bytes)
        }
        JSONWriter.raw("]}", to: &bytes)
    }

    private static func seconds(_ opening: StaticString, _ duration: Duration?, to bytes: inout [UInt8]) {
        guard let duration else { return }
        JSONWriter.raw(opening, to: &bytes)
        JSONWriter.integer(Int(clamping: duration.components.seconds), to: &bytes)
    }
}
