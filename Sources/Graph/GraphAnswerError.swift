internal import Bytes
internal import HTTPClient
internal import JOSE

/// Finds the error in an answer, if it is one.
enum GraphAnswerError {
    /// Parses the body into `document`, which stays empty where it is no JSON, and throws the error that it, or the
    /// status alone, tells.
    static func check(
        _ response: HTTPSResponse,
        _ document: inout JSONDocument,
        _ limits: GraphLimits
    ) throws(GraphFailure) {
        let body = response.body.span
        // What is no JSON leaves the document empty, and is judged by the status alone.
        try? document.parse(body)
        if document.count > 0, document.kind(document.root) == .object,
            let error = document.member("error", of: document.root, in: body)
        {
            throw failure(error, document, response, limits)
        }
        guard !(200..<300).contains(response.status) else { return }
        throw GraphFailure(ofStatus(response.status), retryAfterSeconds: retryAfter(response, limits))
    }

    /// RFC 9110, 15: what a status says where no error stands in the body.
    private static func ofStatus(_ status: Int) -> GraphError {
        switch status {
        case 429: .rateLimited
        case 500...: .unavailable
        default: .unreadableAnswer
        }
    }

    private static func failure(
        _ error: Int,
        _ document: borrowing JSONDocument,
        _ response: HTTPSResponse,
        _ limits: GraphLimits
    ) -> GraphFailure {
        let body = response.body.span
        guard document.kind(error) == .object else {
            // The web hosts number their errors otherwise; OAuth names them.
            let known = response.status == 429 || response.status >= 500
            let reason = known ? ofStatus(response.status) : GraphError.other
            return GraphFailure(reason, retryAfterSeconds: known ? retryAfter(response, limits) : nil)
        }
        let code = document.member("code", of: error, in: body).flatMap { document.integer($0, in: body) }
        let subcode = document.member("error_subcode", of: error, in: body).flatMap { document.integer($0, in: body) }
        var reason = code.map { GraphError(code: $0, subcode: subcode) } ?? .other
        if reason == .other {
            if let transient = document.member("is_transient", of: error, in: body), document.kind(transient) == .true {
                reason = .unavailable
            } else if response.status == 429 || response.status >= 500 {
                reason = ofStatus(response.status)
            }
        }
        var failure = GraphFailure(reason, code: code, subcode: subcode)
        failure.traceID = traceID(error, document, body, limits)
        // The code of a passing fault, though it will not pass: the number alone does not tell.
        if code == 1, says("desktop app", error, document, body) {
            failure = GraphFailure(.accessTokenRefused, traceID: failure.traceID, code: code, subcode: subcode)
            failure.advice = desktopAdvice
            return failure
        }
        if reason.isThrottling || reason.isTransient { failure.retryAfterSeconds = retryAfter(response, limits) }
        if reason.isThrottling, failure.retryAfterSeconds == nil {
            failure.retryAfterSeconds = limits.defaultRetryAfterSeconds
        }
        return failure
    }

    private static let desktopAdvice =
        "Graph lets no app of the type Native or Desktop use its own access token; set the App Dashboard's Advanced "
        + "settings to another type of app."

    /// Whether an error's message has these words. It may name people, so it is looked at here and passed on nowhere.
    static func says(
        _ words: StaticString,
        _ error: Int,
        _ document: borrowing JSONDocument,
        _ body: Span<UInt8>
    ) -> Bool {
        guard let message = document.member("message", of: error, in: body), document.isString(message) else {
            return false
        }
        return document.string(message, in: body).lowercased().contains("\(words)".lowercased())
    }

    /// `fbtrace_id`, where it is what such a name looks like; anything else is not passed on.
    private static func traceID(
        _ error: Int,
        _ document: borrowing JSONDocument,
        _ body: Span<UInt8>,
        _ limits: GraphLimits
    ) -> String? {
        guard let node = document.member("fbtrace_id", of: error, in: body), document.isString(node) else { return nil }
        let text = document.string(node, in: body)
        let isPlain = text.utf8.allSatisfy { byte in
            ASCII.isAlphanumeric(byte) || "_-+/=".utf8.contains(byte)
        }
        return isPlain && (1...limits.traceIDBytes).contains(text.utf8.count) ? text : nil
    }

    /// How long to wait, in seconds: `Retry-After` (RFC 9110, 10.2.3), else the longest
    /// `estimated_time_to_regain_access` (minutes) of Graph's usage fields; nil where neither says.
    static func retryAfter(_ response: HTTPSResponse, _ limits: GraphLimits) -> Int? {
        let greatest = limits.greatestRetryAfterSeconds
        if let text = response.value(of: "retry-after"), (1...9).contains(text.utf8.count),
            text.utf8.allSatisfy({ $0 &- 0x30 < 10 }), let seconds = Int(text)
        {
            return min(max(seconds, 1), greatest)
        }
        let names = ["x-business-use-case-usage", "x-app-usage", "x-page-usage"]
        let minutes = names.compactMap { response.value(of: $0) }.compactMap { regainMinutes(Array($0.utf8)) }.max()
        return minutes.flatMap { $0 > 0 ? min($0 * 60, greatest) : nil }
    }

    /// The greatest value of that member anywhere in a field's JSON; 0 … 100,000.
    private static func regainMinutes(_ text: [UInt8]) -> Int? {
        var document = JSONDocument()
        guard (try? document.parse(text.span)) != nil else { return nil }
        var greatest: Int?
        for node in 0..<document.count where document.kind(node) == .name {
            guard document.string(node, equals: "estimated_time_to_regain_access", in: text.span),
                let minutes = document.integer(node + 1, in: text.span), (0...100_000).contains(minutes)
            else { continue }
            greatest = max(greatest ?? 0, Int(minutes))
        }
        return greatest
    }
}
