internal import HTTP1
internal import KeySets
internal import Networking

/// Liveness and readiness, apart: an outage of the key source must not get a living process killed.
struct HealthEndpoint {
    let core: ServiceCore

    func answer(
        _ route: Route,
        isVerbose: Bool,
        context: RequestContext,
        response: inout HTTPResponse
    ) throws(Problem) {
        response.addField("Cache-Control: no-store")
        if route == .readyz {
            guard !core.isDraining else {
                throw refusal(&response, Problem(.draining, "The service is stopping."))
            }
            guard core.cache.snapshot.isUsable(at: context.now) else {
                let reason = isVerbose ? core.cache.status.lastError.map { ": \($0)" } ?? "" : ""
                throw refusal(&response, Problem(.keysUnavailable, "No usable keys\(reason)."))
            }
        }
        guard isVerbose else {
            response.addField("Content-Type: text/plain; charset=utf-8")
            JSONWriter.raw("ok\n", to: &response.body)
            return
        }
        response.addField("Content-Type: application/json")
        HealthReport.write(core.cache.status, core.replayStore, isDraining: core.isDraining, to: &response.body)
    }

    /// A problem brings its own fields.
    private func refusal(_ response: inout HTTPResponse, _ problem: Problem) -> Problem {
        response.reset()
        return problem
    }
}
