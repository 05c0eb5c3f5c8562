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

    /// Removes the app from the person's account, then sends the callback, in the same order as Facebook. The answer is
    /// the service's own. `?app_id=` names another app, `?issued_at=` another time.
    func callBack(_ name: String, _ userID: String, _ request: StandInRequest) -> StandInAnswer {
        switch callbacks.visit(request.context) {
        case .none: break
        case .waiting(let moment): return StandInAnswer(pause: moment)
        case .expired: return .text(502, "the service did not answer")
        case .done(_, let answer): return answer
        }
        let appID = request.query["app_id"] ?? template.audience
        _ = graph.revoke(nil, of: StandInGraph.Person(appID: appID, userID: userID))
        let issuedAt = request.query["issued_at"].flatMap { Int64($0) } ?? request.now
        guard let service = service.withLock({ $0 }), let url = try? HTTPURL(parsing: "\(service)/callbacks/\(name)")
        else { return .text(503, "the stand-in does not know the service: start it with --service-url") }
        let signed = try? SignedRequestMinter.mint(userID: userID, issuedAt: issuedAt, appSecret: graph.appSecret)
        let deadline = MonotonicClock.now() + Self.patience
        let isBegun = callbacks.begin(request.context, keeping: (), until: deadline) { request in
            guard let signed else { return false }
            DispatchQueue(label: "callback").async {
                self.callbacks.finish(request, self.send(signed, url), now: MonotonicClock.now())
            }
            return true
        }
        return isBegun ? StandInAnswer(pause: deadline) : .text(503, "too many callbacks are under way")
    }

    /// The service's answer, or the reason why there is none.
    private func send(_ signed: String, _ url: HTTPURL) -> StandInAnswer {
        var limits = HTTPSClientLimits()
        limits.fetchTimeout = Self.patience
        do throws(ClientError) {
            let form = HTTPSRequest(.post, url, body: .form([("signed_request", signed)]))
            let response = try client.send(form, limits: limits)
            let body = String(decoding: response.body, as: UTF8.self)
            return StandInAnswer(status: UInt16(clamping: response.status), body: body)
        } catch {
            return StandInAnswer(status: 502, body: "\(error)\n")
        }
    }
}

extension StandInRequest {
    /// The parts of `/users/{id}/deauthorize` and `/users/{id}/data-deletion`.
    var callback: (userID: String, name: String)? {
        let parts = parts
        guard parts.count == 3, parts[0] == "users", ["deauthorize", "data-deletion"].contains(parts[2]),
            DecimalNumber.isIdentifier(parts[1].utf8)
        else { return nil }
        return (parts[1], parts[2])
    }
}
