internal import CoreMetrics
internal import HTTP1

/// One worker's timers, found by route, method and status without joining labels again.
struct RequestDurations {
    private struct Key: Hashable {
        let route: Route
        let method: HTTPMethod
        let status: UInt16
    }

    private let metrics: ServiceMetrics
    private var timers: [Key: Timer] = [:]
    /// The timer of the request before: nearly always the next one's too.
    private var latest: (key: Key, timer: Timer)?

    init(metrics: ServiceMetrics) { self.metrics = metrics }

    mutating func record(_ nanoseconds: UInt64, route: Route, method: HTTPMethod, status: UInt16) {
        let key = Key(route: route, method: method, status: status)
        let amount = Int64(clamping: nanoseconds)
        if let latest, latest.key == key {
            latest.timer.recordNanoseconds(amount)
            return
        }
        let timer = timers[key] ?? metrics.duration(of: route, method: method, status: status)
        timers[key] = timer
        latest = (key, timer)
        timer.recordNanoseconds(amount)
    }
}
