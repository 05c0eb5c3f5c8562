internal import Dispatch
internal import LLBytes
internal import LLJOSE

extension JWKSetCache {
    /// Asks the sources and applies the outcome. It runs on the cache's queue; the state has begun this fetch.
    func runFetch(_ reason: JWKSetEvent.Reason) {
        events(.fetchStarted(reason: reason))
        announcePhase(at: clock())
        let began = clock()
        let number = storage.withLock { $0.machine.fetchNumber }
        let result = askSources(for: reason)
        let now = clock()
        switch result {
        case .success(let answer): accept(answer, duration: now.duration(since: began), at: now)
        case .failure(let failure): reject(failure, at: now)
        }
        announcePhase(at: now)
        notifyWaiters(through: number)
        arm()
        if case .success = result { writeSeed() }
    }

    /// Performs all that is due: a refresh, a retry, a phase that changed by time alone.
    package func tick() {
        let now = clock()
        let due = storage.withLock { $0.machine.wake(at: now) }
        announcePhase(at: now)
        if let due { runFetch(due) } else { arm() }
    }

    /// Schedules ``tick()`` for the next due time, in place of an earlier one. It runs on the cache's queue.
    func arm() {
        let now = clock()
        guard let wake = storage.withLock({ $0.machine.nextWake(after: now) }) else { return }
        let timer = unsafe alarm ?? DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now() + .nanoseconds(Int(clamping: wake.nanoseconds(since: now))))
        guard unsafe alarm == nil else { return }
        timer.setEventHandler { [weak self] in self?.tick() }
        timer.activate()
        unsafe alarm = timer
    }

    /// Resumes the requests that wait for this fetch or an earlier one. The next fetch may have begun already; its
    /// requests wait longer.
    func notifyWaiters(through fetch: UInt64) {
        let (handlers, waiters) = storage.withLock { storage in
            let waiters = storage.waiters.filter { $0.value.fetch <= fetch }
            for number in waiters.keys { storage.waiters[number] = nil }
            return (storage.updateHandlers, waiters.values)
        }
        for handler in handlers { handler() }
        for waiter in waiters { waiter.task.resume() }
    }

    func announcePhase(at now: MonotonicInstant) {
        let change: JWKSetEvent? = storage.withLock { storage in
            let before = storage.announcedPhase
            storage.announcedPhase = storage.machine.phase(at: now)
            return before == storage.announcedPhase ? nil : .phaseChanged(from: before, to: storage.announcedPhase)
        }
        if let change { events(change) }
    }

    private func reject(_ failure: JWKSetSourceError, at now: MonotonicInstant) {
        let event: JWKSetEvent? = storage.withLock { storage in
            storage.machine.fail(retryAfter: failure.retryAfter, at: now)
            // No source is at fault if the stop ended the fetch.
            guard !storage.machine.isStopped else { return nil }
            storage.counters.fetchesFailed += 1
            storage.lastError = failure.reason
            return .fetchFailed(
                reason: failure.reason,
                consecutiveFailures: storage.machine.consecutiveFailures,
                nextAttempt: storage.machine.nextAttempt?.duration(since: now) ?? .zero
            )
        }
        if let event { events(event) }
    }

    /// Puts a good answer in force.
    private func accept(_ answer: SourceAnswer, duration: Duration, at now: MonotonicInstant) {
        let name = sources[answer.source].name
        let (change, life) = storage.withLock { storage -> (JWKSetEvent?, Duration) in
            let before = published.value
            let keySet = answer.found?.keySet ?? before.keySet
            let isReplaced = before.epoch == 0 || keySet != before.keySet
            storage.machine.confirm(answer.freshness, isReplaced: isReplaced, at: now)
            for key in before.keySet.keys where keySet.key(withID: key.keyID) == nil {
                storage.machine.keyHasLeft(hash: Self.hash(key.keyID.utf8.span))
            }
            storage.lastError = nil
            storage.currentSource = answer.source
            if let document = answer.found?.document {
                storage.validator = document.validator
                if seedFile != nil { storage.bytes = document.bytes }
            }
            if isReplaced { storage.counters.fetchesReplaced += 1 } else { storage.counters.fetchesUnchanged += 1 }
            let version = before.keySetVersion + (isReplaced ? 1 : 0)
            publish(keySet, version: version, source: name, in: &storage)
            let change = isReplaced ? JWKSetEvent.keySetChange(from: before.keySet, to: keySet, source: name) : nil
            return (change, storage.machine.timeToLive(of: answer.freshness))
        }
        events(.fetchSucceeded(source: name, changed: change != nil, duration: duration, timeToLive: life))
        guard let change else { return }
        events(change)
        for key in answer.found?.keySet.ignoredKeys ?? [] {
            let reason = key.reason.description
            events(.keyIgnored(source: name, index: key.index, keyID: key.keyID, reason: reason))
        }
    }

    func publish(_ keySet: JWKSet, version: UInt64, source: String, in storage: inout Storage) {
        published.publish(
            JWKSetSnapshot(
                epoch: published.epoch + 1,
                keySetVersion: version,
                keySet: keySet,
                source: source,
                times: storage.machine.times,
                clock: clock
            )
        )
    }
}

extension JWKSetEvent {
    static func keySetChange(from before: JWKSet, to after: JWKSet, source: String) -> JWKSetEvent {
        .keySetChanged(
            source: source,
            added: after.keys.map(\.keyID).filter { before.key(withID: $0) == nil },
            removed: before.keys.map(\.keyID).filter { after.key(withID: $0) == nil },
            replaced: after.keys.filter { key in before.key(withID: key.keyID).map { $0 != key } ?? false }.map(\.keyID)
        )
    }
}

/// A source's good answer: a set with at least one usable key, or the statement that the last set is still valid.
struct SourceAnswer {
    let source: Int
    let freshness: JWKSetFreshness
    /// Nil for 304.
    var found: (keySet: JWKSet, document: JWKSetDocument)?
}

extension JWKSetCache {
    /// Asks one source after the other, in the configured order, until one gives a usable set. A failure has the last
    /// source's sentence. It also has the shortest `Retry-After` of the sources, if every failed source sent one.
    func askSources(for reason: JWKSetEvent.Reason) -> Result<SourceAnswer, JWKSetSourceError> {
        let (current, validator) = storage.withLock { ($0.currentSource, $0.validator) }
        var retryAfters: [Duration?] = []
        var lastReason = ""
        // If requests wait for the answer, the source that answered last comes first.
        let first = reason == .unknownKeyID ? current : nil
        for index in (first.map { [$0] } ?? []) + sources.indices.filter({ $0 != first }) {
            if storage.withLock({ $0.machine.isStopped }) { break }
            do {
                return .success(try ask(index, validator: index == current ? validator : nil))
            } catch {
                if storage.withLock({ $0.machine.isStopped }) { break }
                events(.sourceFailed(source: sources[index].name, reason: error.reason))
                lastReason = "\(sources[index].name): \(error.reason)"
                retryAfters.append(error.retryAfter)
            }
        }
        let known = retryAfters.compactMap { $0 }
        let retryAfter = known.count == retryAfters.count ? known.min() : nil
        return .failure(JWKSetSourceError(lastReason, retryAfter: retryAfter))
    }

    /// Calls a source and waits for its answer. A source that suspends and does not bound its own time is cancelled.
    private func fetch(from source: any JWKSetSource, validator: String?) throws(JWKSetSourceError) -> JWKSetAnswer {
        let (answer, ended) = (Locked<Result<JWKSetAnswer, JWKSetSourceError>?>(nil), DispatchSemaphore(value: 0))
        let task = Task(executorPreference: QueueExecutor(queue: sourceQueue)) {
            let result: Result<JWKSetAnswer, JWKSetSourceError>
            do throws(JWKSetSourceError) {
                result = .success(try await source.fetch(validator: validator))
            } catch { result = .failure(error) }
            answer.withLock { $0 = result }
            ended.signal()
        }
        let isStopped = storage.withLock { storage in
            storage.fetch = task
            return storage.machine.isStopped
        }
        if isStopped { task.cancel() }
        let limit = Int(JWKSetCacheLimits.fetchTimeout.components.seconds)
        if ended.wait(timeout: .now() + .seconds(limit)) == .timedOut {
            task.cancel()
            ended.wait()
        }
        storage.withLock { $0.fetch = nil }
        guard let answer = answer.withLock({ $0 }) else { throw JWKSetSourceError("the fetch was not run") }
        return try answer.get()
    }

    private func ask(_ index: Int, validator: String?) throws(JWKSetSourceError) -> SourceAnswer {
        switch try fetch(from: sources[index], validator: validator) {
        case .notModified(let freshness):
            // Only a request with a validator can be answered 304 (RFC 9110, 15.4.5).
            guard validator != nil else { throw JWKSetSourceError("not modified, although nothing was held") }
            return SourceAnswer(source: index, freshness: freshness)
        case .fetched(let document):
            return SourceAnswer(source: index, freshness: document.freshness, found: (try judge(document), document))
        }
    }

    /// Parses a source's document. A set without a usable key is a failure of its source: the good keys stay.
    func judge(_ document: JWKSetDocument) throws(JWKSetSourceError) -> JWKSet {
        guard document.bytes.count <= JWKSet.Limits.byteCount else {
            let size = DecimalNumber.grouped(JWKSet.Limits.byteCount)
            throw JWKSetSourceError("the answer is larger than \(size) bytes")
        }
        let keySet: JWKSet
        do {
            keySet = try JWKSet(parsing: document.bytes.span)
        } catch { throw JWKSetSourceError(error.description) }
        guard !keySet.keys.isEmpty else { throw JWKSetSourceError("the JWK Set holds no usable key") }
        return keySet
    }
}

/// Runs asynchronous code on a queue. It does not use Swift's own pool: one use of that wakes the process once a second.
private final class QueueExecutor: TaskExecutor {
    private let queue: DispatchQueue

    init(queue: DispatchQueue) { self.queue = queue }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
