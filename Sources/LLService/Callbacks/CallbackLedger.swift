internal import LimitedLogin

/// The running callbacks, and those of the day: each `webhook-id` is delivered by one request at a time.
///
/// Every reader of a signed request can send it again, so a repetition takes no place from another callback. It waits
/// for the running delivery, or is answered from memory. No clock is needed: a request older than a day is refused
/// earlier.
struct CallbackLedger: Sendable {
    /// The result for Facebook, with the backend's answer for the person if it gave one.
    typealias Outcome = Result<DeletionStatus?, Rejection>
    typealias Waiter = @Sendable (Outcome) -> Void

    /// Repetitions that wait for running deliveries, of all ids together. 128: a small part of the requests that may wait
    /// at one worker.
    static let repetitionLimit = 128
    /// Greatest number of remembered ids. 4,096: a day of a busy app, in about 600 KB. The oldest are removed first; a
    /// repetition of those is delivered again, and the backend detects it by its `webhook-id`.
    static let memoryLimit = 4_096
    /// Greatest size of the remembered answers, in bytes: 1 MiB.
    static let statusByteLimit = 1_048_576

    enum Memory: Sendable {
        case failed
        /// The backend accepted it, but the other replicas were not told of the revocation.
        case delivered(DeletionStatus?)
        /// Facebook got the answer that all is done.
        case acknowledged(DeletionStatus?)

        fileprivate var byteCount: Int {
            switch self {
            case .failed: 0
            case .delivered(let status), .acknowledged(let status):
                status.map { $0.url.utf8.count + $0.confirmationCode.utf8.count } ?? 0
            }
        }
    }

    enum Step {
        /// Revoke the login, call the backend unless that is remembered as done, then call
        /// ``CallbackLedger/end(_:_:)``.
        case perform(Memory?)
        case wait
        case answered(DeletionStatus?)
        case refused
        case repetitionRefused
    }

    private struct Repetition {
        let answer: Waiter
        let isAwaited: @Sendable () -> Bool
    }

    private struct Delivery {
        let first: Waiter
        var repetitions: [Repetition] = []
        let isRetry: Bool
    }

    private let places: Int
    private var underWay: [String: Delivery] = [:]
    private var repetitions = 0
    private var retries = 0
    private var memory: [String: Memory] = [:]
    private var order: [String] = []
    private var statusBytes = 0

    init(places: Int) { self.places = places }

    /// The greatest number of running deliveries with an id that failed before: half of the places, so that the others
    /// are left to new ids.
    private var retryLimit: Int { max(1, places / 2) }

    /// A good callback has come.
    /// - Parameter isAwaited: true while its client waits. A repetition without a waiting client loses its place as soon
    ///   as another needs one.
    mutating func begin(
        _ id: String,
        isAwaited: @escaping @Sendable () -> Bool = { true },
        _ waiter: @escaping Waiter
    ) -> Step {
        if underWay[id] != nil {
            if repetitions >= Self.repetitionLimit { removeAbandoned() }
            guard repetitions < Self.repetitionLimit else { return .repetitionRefused }
            repetitions += 1
            underWay[id]?.repetitions.append(Repetition(answer: waiter, isAwaited: isAwaited))
            return .wait
        }
        let known = memory[id]
        if case .acknowledged(let status)? = known { return .answered(status) }
        let isRetry = known != nil
        guard underWay.count < places, !isRetry || retries < retryLimit else { return .refused }
        if isRetry { retries += 1 }
        underWay[id] = Delivery(first: waiter, isRetry: isRetry)
        return .perform(known)
    }

    private mutating func removeAbandoned() {
        for id in underWay.keys { underWay[id]?.repetitions.removeAll { !$0.isAwaited() } }
        repetitions = underWay.values.reduce(0) { $0 + $1.repetitions.count }
    }

    /// The delivery of an id is over.
    mutating func end(_ id: String, _ result: Memory) -> [Waiter] {
        guard let delivery = underWay.removeValue(forKey: id) else { return [] }
        repetitions -= delivery.repetitions.count
        if delivery.isRetry { retries -= 1 }
        remember(id, result)
        return [delivery.first] + delivery.repetitions.map(\.answer)
    }

    private mutating func remember(_ id: String, _ result: Memory) {
        let former = memory.updateValue(result, forKey: id)
        statusBytes += result.byteCount - (former?.byteCount ?? 0)
        if former == nil { order.append(id) }
        while order.count > Self.memoryLimit || statusBytes > Self.statusByteLimit, let oldest = order.first {
            order.removeFirst()
            statusBytes -= memory.removeValue(forKey: oldest)?.byteCount ?? 0
        }
    }
}
