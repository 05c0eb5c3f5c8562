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
