internal import KeySets
internal import Logging
internal import Metrics

/// Turns the key cache's events into log lines and counts: one line for each change of state and of the key set.
struct KeyEvents: Sendable {
    private let logger: Logger
    private let succeeded: Counter
    private let unchanged: Counter
    private let failed: Counter

    init(logger: Logger, factory: any MetricsFactory) {
        self.logger = logger
        func fetches(_ result: String) -> Counter {
            Counter(label: "jwks_fetches_total", dimensions: [("result", result)], factory: factory)
        }
        succeeded = fetches("replaced")
        unchanged = fetches("unchanged")
        failed = fetches("failed")
    }

    func record(_ event: JWKSetEvent) {
        switch event {
        case .fetchStarted(let reason):
            logger.debug("fetching keys", metadata: ["reason": "\(reason.rawValue)"])
        case .sourceFailed(let source, let reason):
            logger.warning("key source failed", metadata: ["source": "\(source)", "reason": "\(reason)"])
        case .fetchSucceeded(let source, let changed, let duration, let timeToLive):
            (changed ? succeeded : unchanged).increment()
            logger.debug(
                "keys fetched",
                metadata: [
                    "source": "\(source)", "duration": "\(duration.inSeconds)",
                    "time_to_live": "\(timeToLive.inSeconds)",
                ]
            )
        case .fetchFailed(let reason, let failures, let nextAttempt):
            failed.increment()
            logger.error(
                "keys could not be fetched",
                metadata: [
                    "reason": "\(reason)", "consecutive_failures": "\(failures)",
                    "next_attempt_in": "\(nextAttempt.inSeconds)",
                ]
            )
        case .keySetChanged(let source, let added, let removed, let replaced):
            logger.notice(
                "key set changed",
                metadata: [
                    "source": "\(source)", "added": "\(added)", "removed": "\(removed)", "replaced": "\(replaced)",
                ]
            )
        case .keyIgnored(let source, let index, let keyID, let reason):
            logger.warning(
                "key ignored",
                metadata: [
                    "source": "\(source)", "index": "\(index)", "key_id": "\(keyID ?? "-")", "reason": "\(reason)",
                ]
            )
        case .phaseChanged(let from, let to):
            logger.info("key cache state changed", metadata: ["from": "\(from.rawValue)", "to": "\(to.rawValue)"])
        case .seedLoaded(let file, let age):
            logger.notice("seed keys loaded", metadata: ["file": "\(file)", "age": "\(age.inSeconds)"])
        case .seedIgnored(let file, let reason):
            logger.warning("seed file ignored", metadata: ["file": "\(file)", "reason": "\(reason)"])
        case .seedNotWritten(let file, let reason):
            logger.warning("seed file not written", metadata: ["file": "\(file)", "reason": "\(reason)"])
        }
    }
}
