internal import Bytes
internal import HTTPClient
internal import JOSE

/// Reads what Graph answers: pure, for any bytes.
enum GraphAnswer {
    /// The permissions of `GET /{user-id}/permissions`: `{"data":[{"permission":"email","status":"granted"},…]}`.
    static func permissions(_ response: HTTPSResponse, _ limits: GraphLimits) throws(GraphFailure) -> UserPermissions {
        var document = document(limits)
        let body = response.body.span
        try GraphAnswerError.check(response, &document, limits)
        guard document.count > 0, document.kind(document.root) == .object,
            let list = document.member("data", of: document.root, in: body), document.kind(list) == .array
        else { throw GraphFailure(.unreadableAnswer) }
        // A list that goes on elsewhere says too little: what is on its next page would be called missing.
        if let paging = document.member("paging", of: document.root, in: body),
            document.member("next", of: paging, in: body) != nil
        {
            throw GraphFailure(.unreadableAnswer)
        }
        var statuses: [GraphPermission: UserPermissions.Status] = [:]
        for element in document.children(of: list) {
            try read(element, document, body, into: &statuses)
            guard statuses.count <= limits.permissionCount else { throw GraphFailure(.unreadableAnswer) }
        }
        func all(_ status: UserPermissions.Status) -> [GraphPermission] {
            statuses.filter { $0.value == status }.keys.sorted()
        }
        return UserPermissions(granted: all(.granted), declined: all(.declined), expired: all(.expired))
    }

    private static func read(
        _ element: Int,
        _ document: borrowing JSONDocument,
        _ body: Span<UInt8>,
        into statuses: inout [GraphPermission: UserPermissions.Status]
    ) throws(GraphFailure) {
        guard let name = document.member("permission", of: element, in: body), document.isString(name),
            let status = document.member("status", of: element, in: body), document.isString(status)
        else { throw GraphFailure(.unreadableAnswer) }
        var bytes: [UInt8] = []
        document.appendString(name, in: body, to: &bytes)
        // A name no caller can ask for, or a status not known yet, is passed over: what is not granted for certain is not
        // granted.
        guard let permission = GraphPermission(bytes.span),
            let known = UserPermissions.Status.allCases.first(where: { candidate in
                document.string(status, equals: candidate.text, in: body)
            })
        else { return }
        // Two statuses of one permission cannot both be true.
        if let before = statuses[permission], before != known { throw GraphFailure(.unreadableAnswer) }
        statuses[permission] = known
    }

    /// The body of an answer that is a JSON object and no error; what it says is for others to judge.
    static func object(_ response: HTTPSResponse, _ limits: GraphLimits) throws(GraphFailure) -> [UInt8] {
        var document = document(limits, bytes: limits.profileBytes)
        try GraphAnswerError.check(response, &document, limits)
        guard document.count > 0, document.kind(document.root) == .object else { throw GraphFailure(.unreadableAnswer) }
        return response.body
    }

    /// The answer of `GET /debug_token`; nil where Graph tells the token to another app alone: code 100, in its own words.
    static func inspection(_ response: HTTPSResponse, _ limits: GraphLimits) throws(GraphFailure) -> [UInt8]? {
        do throws(GraphFailure) {
            return try object(response, limits)
        } catch {
            guard error.code == 100 else { throw error }
            var document = document(limits)
            let body = response.body.span
            guard (try? document.parse(body)) != nil,
                let member = document.member("error", of: document.root, in: body),
                GraphAnswerError.says("did not match the Viewing App", member, document, body)
            else { throw error }
            return nil
        }
    }

    /// The answer to `DELETE`: `true`, or `{"success":true}`; its opposite is ``GraphError/refused``.
    static func revocation(_ response: HTTPSResponse, _ limits: GraphLimits) throws(GraphFailure) {
        var document = document(limits)
        try GraphAnswerError.check(response, &document, limits)
        let body = response.body.span
        guard document.count > 0 else { throw GraphFailure(.unreadableAnswer) }
        let root = document.root
        if document.kind(root) == .object {
            guard let success = document.member("success", of: root, in: body) else {
                throw GraphFailure(.unreadableAnswer)
            }
            return try requireYes(success, document, body)
        }
        try requireYes(root, document, body)
    }

    /// The answer of the uninstall endpoint. Its form is documented nowhere, so every plausible yes is taken: nothing at
    /// all, what ``revocation(_:_:)`` takes, or an object that has no `error` and does not deny its success; each
    /// perhaps behind the `for (;;);` that Facebook puts before JSON on its web hosts.
    static func uninstallation(_ response: HTTPSResponse, _ limits: GraphLimits) throws(GraphFailure) {
        let guardText = Array("for (;;);".utf8)
        var response = response
        if response.body.starts(with: guardText) {
            response = HTTPSResponse(
                status: response.status,
                fields: response.fields,
                body: Array(response.body.dropFirst(guardText.count))
            )
        }
        var document = document(limits)
        try GraphAnswerError.check(response, &document, limits)
        let body = response.body.span
        if document.count == 0 {
            guard body.isEmpty else { throw GraphFailure(.unreadableAnswer) }
            return
        }
        let root = document.root
        guard document.kind(root) == .object else { return try requireYes(root, document, body) }
        if let success = document.member("success", of: root, in: body) { try requireYes(success, document, body) }
    }

    private static func requireYes(
        _ node: Int,
        _ document: borrowing JSONDocument,
        _ body: Span<UInt8>
    ) throws(GraphFailure) {
        switch document.kind(node) {
        case .true: return
        case .number where document.integer(node, in: body) == 1: return
        case .string where document.string(node, equals: "true", in: body): return
        case .false, .number, .null: throw GraphFailure(.refused)
        case .string where document.string(node, equals: "false", in: body): throw GraphFailure(.refused)
        case .string, .array, .object, .name: throw GraphFailure(.unreadableAnswer)
        }
    }

    private static func document(_ limits: GraphLimits, bytes: Int? = nil) -> JSONDocument {
        var json = JSONLimits()
        json.byteCount = bytes ?? limits.bodyBytes
        return JSONDocument(limits: json)
    }
}

extension UserPermissions {
    /// What Graph says of one permission.
    enum Status: CaseIterable {
        case granted, declined, expired

        var text: StaticString {
            switch self {
            case .granted: "granted"
            case .declined: "declined"
            case .expired: "expired"
            }
        }
    }
}

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
