internal import Logging
internal import Metrics
internal import ReplayStores

/// Turns the store's events into log lines and durations: one line for each change of state.
struct ReplayStoreEvents: Sendable {
    private let logger: Logger
    private let duration: Timer

    init(logger: Logger, factory: any MetricsFactory) {
        self.logger = logger
        duration = Timer(label: "limited_login_replay_store_answer_duration_seconds", dimensions: [], factory: factory)
    }

    func record(_ event: ReplayStoreEvent) {
        switch event {
        case .answered(let answer, let nanoseconds):
            // What was refused without asking took no time, and would hide how long answers take.
            guard answer != .unavailable || nanoseconds > 0 else { return }
            duration.recordNanoseconds(Int64(clamping: nanoseconds))
        case .up(let life):
            logger.notice("replay store up", metadata: ["remembers_since": "\(life.since / 1_000)"])
        case .down(let failure):
            logger.error("replay store down", metadata: ["reason": "\(failure)"])
        }
    }
}
