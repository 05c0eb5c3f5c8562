internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LimitedLogin

/// A response of Graph. Reading it is pure and safe for any bytes.
struct GraphAnswer: ~Copyable {
    private let response: HTTPSResponse
    /// The parsed body; empty if the body is not JSON. The status alone decides in that case.
    private var json: JSONObject
    private let isObject: Bool

    private init(_ response: HTTPSResponse, bytes: Int = GraphLimits.bodyBytes) {
        self.response = response
        json = JSONObject(limits: JSONLimits(byteCount: bytes))
        json.bytes = response.body
        isObject = (try? json.read()) == true
    }

    /// The permissions of `GET /{user-id}/permissions`: `{"data":[{"permission":"email","status":"granted"},…]}`.
    static func permissions(_ response: HTTPSResponse) throws(GraphFailure) -> UserPermissions {
        let answer = GraphAnswer(response)
        try answer.check()
        guard let list = answer.json.member("data"), answer.json.document.kind(list) == .array else { throw unreadable }
        // A list with further pages is refused: permissions on the next page would be reported as missing.
        if let paging = answer.json.member("paging"), answer.json.member("next", of: paging) != nil { throw unreadable }
        var statuses: [String: UserPermissions.Status] = [:]
        for element in answer.json.document.children(of: list) {
            guard let name = answer.json.string("permission", of: element),
                let status = answer.json.string("status", of: element)
            else { throw unreadable }
            // Names that no caller can request and unknown statuses are skipped.
            guard PermissionName.isValid(name), let known = UserPermissions.Status(rawValue: status) else { continue }
            // Two different statuses of one permission contradict each other.
            guard statuses.updateValue(known, forKey: name) ?? known == known else { throw unreadable }
            guard statuses.count <= GraphLimits.permissionCount else { throw unreadable }
        }
        func all(_ status: UserPermissions.Status) -> [String] { statuses.filter { $0.value == status }.keys.sorted() }
        return UserPermissions(granted: all(.granted), declined: all(.declined), expired: all(.expired))
    }

    /// The body of an answer that is a JSON object and not an error. The caller reads its content.
    static func object(_ response: HTTPSResponse) throws(GraphFailure) -> [UInt8] {
        let answer = GraphAnswer(response, bytes: GraphLimits.profileBytes)
        try answer.check()
        guard answer.isObject else { throw unreadable }
        return response.body
    }

    /// The answer of `GET /debug_token`. Nil if Graph answers code 100 and says that the token belongs to another app.
    static func inspection(_ response: HTTPSResponse) throws(GraphFailure) -> [UInt8]? {
        do throws(GraphFailure) {
            return try object(response)
        } catch {
            guard error.code == 100, GraphAnswer(response).says("did not match the viewing app") else { throw error }
            return nil
        }
    }

    /// The answer to `DELETE`: `true` or `{"success":true}`. A negative answer throws `graph_refused`.
    static func revocation(_ response: HTTPSResponse) throws(GraphFailure) {
        guard try isDone(response) else { throw unreadable }
    }

    /// The answer of the uninstall endpoint. Facebook does not document its form, so every plausible success is
    /// accepted: an empty body, every success of ``revocation(_:)``, or an object that has no `error` and does not deny
    /// success. Each may follow the prefix `for (;;);` that Facebook puts before JSON on its web hosts.
    static func uninstallation(_ response: HTTPSResponse) throws(GraphFailure) {
        let guardText = "for (;;);".utf8
        var response = response
        if response.body.starts(with: guardText) { response.body.removeFirst(guardText.count) }
        if response.body.isEmpty, (200..<300).contains(response.status) { return }
        _ = try isDone(response)
    }

    /// True if the answer affirms success; false for an object that tells neither success nor an error.
    private static func isDone(_ response: HTTPSResponse) throws(GraphFailure) -> Bool {
        let answer = GraphAnswer(response)
        try answer.check()
        guard answer.json.document.count > 0 else { throw unreadable }
        guard let success = answer.isObject ? answer.json.member("success") : answer.json.document.root else {
            return false
        }
        try answer.requireYes(success)
        return true
    }

    private static var unreadable: GraphFailure { GraphFailure(.graphUnreadableAnswer) }

    private func requireYes(_ node: Int) throws(GraphFailure) {
        switch (json.document.kind(node), json.string(node)) {
        case (.true, _), (.string, "true"): return
        case (.number, _) where json.document.integer(node, in: json.bytes.span) == 1: return
        case (.false, _), (.number, _), (.null, _), (.string, "false"): throw GraphFailure(.graphRefused)
        default: throw Self.unreadable
        }
    }

    private func check() throws(GraphFailure) {
        if let error = json.member("error") { throw failure(error) }
        guard !(200..<300).contains(response.status) else { return }
        throw GraphFailure(errorOfStatus, retryAfterSeconds: retryAfter)
    }

    /// The error for the status, if the body has none (RFC 9110 section 15).
    private var errorOfStatus: Rejection.Code {
        switch response.status {
        case 429: .graphRateLimited
        case 500...: .graphUnavailable
        default: .graphUnreadableAnswer
        }
    }

    private func failure(_ error: Int) -> GraphFailure {
        let tellsStatus = response.status == 429 || response.status >= 500
        guard json.document.isObject(error) else {
            // The web hosts number their errors differently; OAuth uses names instead of numbers.
            return tellsStatus ? GraphFailure(errorOfStatus, retryAfterSeconds: retryAfter) : GraphFailure(.graphError)
        }
        let (code, subcode) = (json.integer("code", of: error), json.integer("error_subcode", of: error))
        let message = json.string("message", of: error) ?? ""
        var reason = code.map { Rejection.Code.graph(code: $0, subcode: subcode, message: message) } ?? .graphError
        if reason == .graphError, json.bool("is_transient", of: error) == true {
            reason = .graphUnavailable
        } else if reason == .graphError, tellsStatus {
            reason = errorOfStatus
        }
        var failure = GraphFailure(reason)
        (failure.code, failure.subcode) = (code, subcode)
        failure.traceID = traceID(error)
        if code == 1, says("desktop app") {
            failure.advice =
                "Graph lets no app of the type Native or Desktop use its own access token; set the App Dashboard's Advanced "
                + "settings to another type of app."
        }
        if reason.isThrottling || reason.isTransient { failure.retryAfterSeconds = retryAfter }
        if reason.isThrottling, failure.retryAfterSeconds == nil {
            failure.retryAfterSeconds = Rejection.Code.defaultThrottlingSeconds
        }
        return failure
    }

    /// True if the error's message has these words, in lower case. The message may name people, so it is never
    /// passed on.
    private func says(_ words: String) -> Bool {
        json.member("error").flatMap { json.string("message", of: $0) }?.lowercased().contains(words) == true
    }

    /// The value of `fbtrace_id` if it has the form of a trace id; nil otherwise.
    private func traceID(_ error: Int) -> String? {
        guard let text = json.string("fbtrace_id", of: error) else { return nil }
        let isPlain = text.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "_-+/=".utf8.contains($0) }
        return isPlain && (1...GraphLimits.traceIDBytes).contains(text.utf8.count) ? text : nil
    }

    /// The time to wait in seconds (RFC 9110 section 10.2.3); nil if the answer does not give one.
    private var retryAfter: Int? {
        guard let text = response.value(of: "retry-after"), (1...9).contains(text.utf8.count),
            text.utf8.allSatisfy({ $0 &- 0x30 < 10 })
        else { return nil }
        return Int(text).map { min(max($0, 1), GraphLimits.greatestRetryAfterSeconds) }
    }
}
