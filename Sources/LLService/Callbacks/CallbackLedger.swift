internal import LimitedLogin

/// The running callbacks, and those of the day: each `webhook-id` is delivered by one request at a time.
///
/// Every reader of a signed request can send it again, so a repetition takes no place from another callback: it is
/// refused while the first is delivered, and answered from memory afterwards. No clock is needed: a request older than a
/// day is refused earlier.
struct CallbackLedger: Sendable {
    /// The result for Facebook, with the backend's answer for the person if it gave one.
    typealias Outcome = Result<DeletionStatus?, Rejection>

    /// Greatest number of remembered ids. 4,096: a day of a busy app, in about 600 KB; 16 MiB with answers of the greatest
    /// size. A repetition of a forgotten one is delivered again, and the backend detects it by its `webhook-id`.
    static let memoryLimit = 4_096

    enum Memory: Sendable {
        case failed
        /// The backend accepted it, but the other replicas were not told of the revocation.
        case delivered(DeletionStatus?)
        /// Facebook got the answer that all is done.
        case acknowledged(DeletionStatus?)
    }

    enum Step {
        /// Revoke the login, call the backend unless that is remembered as done, then call ``CallbackLedger/end(_:_:)``.
        case perform(Memory?)
        case answered(DeletionStatus?)
        case refused
        /// Another request delivers the same callback.
        case underWay
    }

    private let places: Int
    /// The running deliveries; true for those that failed before.
    private var underWay: [String: Bool] = [:]
    private var memory: [String: Memory] = [:]
    private var order: [String] = []

    init(places: Int) { self.places = places }

    mutating func begin(_ id: String) -> Step {
        if underWay[id] != nil { return .underWay }
        let known = memory[id]
        if case .acknowledged(let status)? = known { return .answered(status) }
        let isRetry = known != nil
        // Half of the places are left to new ids.
        let retries = underWay.values.count { $0 }
        guard underWay.count < places, !isRetry || retries < max(1, places / 2) else { return .refused }
        underWay[id] = isRetry
        return .perform(known)
    }

    mutating func end(_ id: String, _ result: Memory) {
        underWay[id] = nil
        if memory.updateValue(result, forKey: id) == nil { order.append(id) }
        if order.count > Self.memoryLimit { memory[order.removeFirst()] = nil }
    }
}
