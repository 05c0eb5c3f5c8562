internal import Dispatch
internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LimitedLoginTesting

/// The stand-in's callbacks. Like Facebook, it signs a request and sends it to the service.
extension StandInIssuer {
    /// The greatest number of callbacks at a time, each on its own queue.
    static let callbackLimit = 64
    /// The greatest time for the service's answer: twice the time that the service promises.
    private static let patience = Duration.seconds(18)

    /// The parts of `/users/{id}/deauthorize` and `/users/{id}/data-deletion`.
    static func callback(_ path: String) -> (userID: String, name: String)? {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 4, parts[1] == "users", ["deauthorize", "data-deletion"].contains(parts[3]),
            DecimalNumber.isIdentifier(parts[2].utf8)
        else { return nil }
        return (parts[2], parts[3])
    }

    /// Removes the app from the person's account, then sends the callback, in the same order as Facebook. The answer is
    /// the service's own. `?app_id=` names another app, `?issued_at=` another time.
    func callBack(
        _ name: String,
        _ userID: String,
        _ query: [String: String],
        _ exchange: inout HTTPExchange
    ) -> RequestDecision {
        switch callbacks.visit(exchange.context) {
        case .none:
            _ = graph.revoke(nil, of: userID, appID: query["app_id"] ?? template.audience)
            let issuedAt = query["issued_at"].flatMap { Int64($0) } ?? conditions.now()
            guard let service = service.withLock({ $0 }),
                let url = try? HTTPURL(parsing: "\(service)/callbacks/\(name)")
            else {
                let reason = "the stand-in does not know the service: start it with --service-url"
                _ = refuse(503, reason, &exchange.response)
                return .respond
            }
            let signed = try? SignedRequestMinter.mint(userID: userID, issuedAt: issuedAt, appSecret: graph.appSecret)
            let deadline = MonotonicClock.now() + Self.patience
            let isBegun = callbacks.begin(exchange.context, keeping: (), until: deadline) { request in
                guard let signed else { return false }
                DispatchQueue(label: "callback").async {
                    self.callbacks.finish(request, self.send(signed, url), now: MonotonicClock.now())
                }
                return true
            }
            if isBegun { return .park(until: deadline) }
            _ = refuse(503, "too many callbacks are under way", &exchange.response)
        case .waiting(let moment): return .park(until: moment)
        case .expired: _ = refuse(502, "the service did not answer", &exchange.response)
        case .done(_, let answer): write(answer, &exchange.response)
        }
        return .respond
    }

    /// The service's answer, or the reason why there is none.
    private func send(_ signed: String, _ url: HTTPURL) -> StandInGraph.Answer {
        var limits = HTTPSClientLimits()
        limits.fetchTimeout = Self.patience
        do throws(HTTPSClientError) {
            let form = HTTPSRequest(.post, url, body: .form([("signed_request", signed)]))
            let response = try client.send(form, limits: limits)
            let body = String(decoding: response.body, as: UTF8.self)
            return StandInGraph.Answer(status: UInt16(clamping: response.status), body: body)
        } catch {
            return StandInGraph.Answer(status: 502, body: "\(error)\n")
        }
    }
}
