internal import LLHTTP
internal import LLJOSE
internal import LLStores
package import LimitedLogin

/// `POST /verify`: reads the request, has the token judged, and answers from the verified bytes.
enum VerifyEndpoint {
    /// The greatest body, in bytes: the greatest token, and half its size for the rest of the body.
    static let bodyLimit = 49_152

    static let answer: Route.Answer = { worker, exchange, bytes in
        do throws(Rejection) {
            try worker.verifyRequest.read(bytes.extracting(exchange.body))
            if let asked = worker.verifyRequest.accessToken {
                return AccessTokenEndpoint.answer(worker, asked, &exchange, bytes)
            }
            return try judge(worker, worker.verifyRequest, &exchange, bytes)
        } catch {
            return .refused(.idToken, error)
        }
    }

    private static func judge(
        _ worker: WorkerContext,
        _ request: borrowing VerifyRequestReader,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>
    ) throws(Rejection) -> Outcome {
        let settings = worker.settings
        try requireNonces(request.expectation, settings)
        let verdict = try worker.judge.judge(
            request.token.span,
            request.expectation,
            verifier: settings.verifier,
            context: exchange.context,
            trace: TraceParent.passedOn(exchange.head, bytes)
        )
        guard let claims = verdict else { return .later(until: worker.judge.waitsUntil, then: answer) }
        let (payload, keyID) = (worker.judge.workspace.payload, worker.judge.workspace.keyID)
        let (asked, isRefresh) = (request.permissions, request.expectation.binding.isRefresh)
        let person = worker.auditName(claims, payload)
        worker.count(request.expectation.binding.givenNonce, &exchange, bytes)
        // Without a closure the usual answer allocates nothing.
        guard let uses = try uses(claims, request.expectation, worker) else {
            write(claims, payload, keyID, asked, isRefresh, &exchange.response)
            return .accepted(.idToken, person: person)
        }
        return try ReplayGuard.consume(uses, of: .idToken, person, worker, &exchange, bytes) { response in
            write(claims, payload, keyID, asked, isRefresh, &response)
        }
    }

    private static func write(
        _ claims: VerifiedClaims,
        _ payload: [UInt8],
        _ keyID: [UInt8],
        _ asked: PermissionSet?,
        _ isRefresh: Bool,
        _ response: inout HTTPResponse
    ) {
        addFields(to: &response)
        VerifyAnswer.write(
            claims,
            payload: payload.span,
            keyID: keyID.span,
            asked: asked,
            isRefresh: isRefresh,
            to: &response.body
        )
    }

    static func requireNonces(_ expectation: borrowing TokenExpectation, _ settings: RuntimeSettings) throws(Rejection)
    {
        guard expectation.binding.requiresIssuedNonce, settings.verifier.nonces == nil else { return }
        throw .noNonceIssuer
    }

    /// The entries that a good token uses up: its nonce, and itself if each token is accepted once. Nil if it uses up
    /// nothing.
    @inline(__always)
    static func uses(
        _ claims: VerifiedClaims,
        _ expectation: borrowing TokenExpectation,
        _ worker: WorkerContext
    ) throws(Rejection) -> ReplayLookup? {
        let settings = worker.settings
        let nonce = worker.judge.workspace.recognizedNonce
        guard nonce != nil || settings.rejectsReplays else { return nil }
        let uses = ReplayLookup(
            claims,
            worker.judge.workspace.payload.span,
            nonce: nonce,
            usesToken: settings.rejectsReplays,
            accessToken: settings.rejectsReplays ? expectation.accessTokenBytes : nil
        )
        guard let uses else { throw Rejection(.replayStoreUnavailable) }
        return uses
    }

    static func addFields(to response: inout HTTPResponse) {
        response.addField("Content-Type: application/json")
        response.addField("Cache-Control: no-store")
    }
}

/// The body of `POST /verify`, read strictly into reusable memory. Each worker has one reader.
package struct VerifyRequestReader: ~Copyable {
    static let members = [
        "id_token", "nonce", "raw_nonce", "issued_nonce", "subject", "app_id", "permissions", "key_thumbprint",
        "access_token",
    ]
    /// The greatest number of requested permissions. There are twelve, and a list may contain duplicates.
    package static let permissionCountLimit = 64

    private var document = JSONDocument(limits: .ofRequest)
    package private(set) var token: [UInt8] = []
    package private(set) var expectation = TokenExpectation()
    private var hasIssuedNonce = false
    private var texts = Texts()
    package private(set) var permissions: PermissionSet?
    /// The request about an access token; nil if there is an id token.
    private(set) var accessToken: AccessTokenRequest?
    private var permissionName: [UInt8] = []

    package init() {}

    /// Reads one body and forgets the previous one.
    package mutating func read(_ body: Span<UInt8>) throws(Rejection) {
        token.removeAll(keepingCapacity: true)
        expectation = TokenExpectation()
        texts.removeAll()
        permissions = nil
        accessToken = nil
        hasIssuedNonce = false
        try document.parseObject(body)
        if document.member("id_token", of: document.root, in: body) == nil,
            document.member("access_token", of: document.root, in: body) != nil
        {
            accessToken = try AccessTokenRequest(document, body)
            return
        }
        var name = document.firstChild(document.root)
        let end = document.next(document.root)
        while name < end {
            try readMember(name, in: body)
            name = document.next(name + 1)
        }
        guard !token.isEmpty else {
            throw Rejection(.invalidRequest, "The member id_token is missing, and there is no access_token.")
        }
        expectation.binding.settle(issuedNonce: hasIssuedNonce)
    }

    /// Texts that keep their memory, so that a request allocates none.
    private struct Texts {
        var (nonce, subject, appID): ([UInt8], [UInt8], [UInt8]) = ([], [], [])
        var (keyThumbprint, accessToken): ([UInt8], [UInt8]) = ([], [])

        mutating func removeAll() {
            nonce.removeAll(keepingCapacity: true)
            subject.removeAll(keepingCapacity: true)
            appID.removeAll(keepingCapacity: true)
            keyThumbprint.removeAll(keepingCapacity: true)
            accessToken.removeAll(keepingCapacity: true)
        }
    }

    private mutating func readMember(_ name: Int, in body: Span<UInt8>) throws(Rejection) {
        let value = name + 1
        if document.string(name, equals: "id_token", in: body) {
            try document.appendText("id_token", value, in: body, to: &token)
        } else if document.string(name, equals: "nonce", in: body) {
            try readNonce("nonce", value, in: body)
            expectation.binding.nonce = .nonce(texts.nonce)
        } else if document.string(name, equals: "raw_nonce", in: body) {
            try readNonce("raw_nonce", value, in: body)
            expectation.binding.nonce = .rawNonce(texts.nonce)
        } else if document.string(name, equals: "issued_nonce", in: body) {
            try document.requireTrue("issued_nonce", value)
            hasIssuedNonce = true
        } else if document.string(name, equals: "subject", in: body) {
            try document.appendText("subject", value, in: body, to: &texts.subject)
            expectation.binding.subject = texts.subject
        } else if document.string(name, equals: "app_id", in: body) {
            try document.requireString("app_id", value)
            document.appendString(value, in: body, to: &texts.appID)
            guard !texts.appID.isEmpty else { throw Rejection(.unknownApp, "The member app_id is empty.") }
            expectation.appIDBytes = texts.appID
        } else if document.string(name, equals: "permissions", in: body) {
            permissions = try document.limitedLoginPermissions(value, in: body, scratch: &permissionName)
        } else if document.string(name, equals: "key_thumbprint", in: body) {
            try document.appendText("key_thumbprint", value, in: body, to: &texts.keyThumbprint)
            expectation.keyThumbprintBytes = texts.keyThumbprint
        } else if document.string(name, equals: "access_token", in: body) {
            try document.appendText("access_token", value, in: body, to: &texts.accessToken)
            expectation.accessTokenBytes = texts.accessToken
        } else if document.string(name, equals: "auth_nonce", in: body) {
            throw Rejection(
                .invalidRequest,
                "The member auth_nonce is for an access token alone: an id token carries its nonce itself."
            )
        } else {
            throw RequestMistake.unknownMember(document.string(name, in: body), known: Self.members)
        }
    }

    private mutating func readNonce(_ member: StaticString, _ value: Int, in body: Span<UInt8>) throws(Rejection) {
        guard expectation.binding.nonce == nil else { throw RequestMistake.severalNonces }
        guard document.isString(value) else { throw Rejection(.invalidNonce, "The member \(member) must be a string.") }
        document.appendString(value, in: body, to: &texts.nonce)
        guard !texts.nonce.isEmpty else { throw Rejection(.invalidNonce, "The member \(member) is empty.") }
    }
}

extension JSONDocument {
    func requireString(_ member: StaticString, _ value: Int) throws(Rejection) {
        guard isString(value) else { throw Rejection(.invalidRequest, "The member \(member) must be a string.") }
    }

    /// Refuses a flag with any value but true. The meaning of false would be unclear, so the flag must be left out
    /// instead.
    func requireTrue(_ member: StaticString, _ value: Int) throws(Rejection) {
        guard kind(value) == .true else {
            throw Rejection(.invalidRequest, "The member \(member) can only be true; leave it out otherwise.")
        }
    }

    /// The nonce that comes with a credential other than an id token.
    func nonce(_ value: Int, in body: Span<UInt8>) throws(Rejection) -> Nonce {
        guard isString(value) else { throw Rejection(.invalidNonce, "The member nonce must be a string.") }
        guard let nonce = Nonce(string(value, in: body)) else { throw .invalidNonce }
        return nonce
    }

    func appendText(
        _ member: StaticString,
        _ value: Int,
        in body: Span<UInt8>,
        to text: inout [UInt8]
    ) throws(Rejection) {
        try requireString(member, value)
        appendString(value, in: body, to: &text)
        guard !text.isEmpty else { throw Rejection(.invalidRequest, "The member \(member) is empty.") }
    }

    /// A member's string, which must not be empty.
    func text(_ member: StaticString, _ value: Int, in body: Span<UInt8>) throws(Rejection) -> [UInt8] {
        var text: [UInt8] = []
        try appendText(member, value, in: body, to: &text)
        return text
    }

    /// The permissions in a list; all must be within the scope of Limited Login.
    /// - Parameter name: Memory for one name.
    func limitedLoginPermissions(
        _ list: Int,
        in body: Span<UInt8>,
        scratch name: inout [UInt8]
    ) throws(Rejection) -> PermissionSet {
        var asked = PermissionSet()
        try forEachPermission(list) { element throws(Rejection) in
            name.removeAll(keepingCapacity: true)
            appendString(element, in: body, to: &name)
            guard let permission = Permission(name: name.span) else {
                throw RequestMistake.unknownPermission(.invalidPermission, String(decoding: name, as: UTF8.self))
            }
            asked.insert(PermissionSet(permission))
        }
        return asked
    }

    @inline(__always)
    func forEachPermission(_ list: Int, _ body: (_ element: Int) throws(Rejection) -> Void) throws(Rejection) {
        guard kind(list) == .array else {
            throw Rejection(.invalidRequest, "The member permissions must be an array of strings.")
        }
        var count = 0
        var element = firstChild(list)
        while element < next(list) {
            guard isString(element), count < VerifyRequestReader.permissionCountLimit else {
                throw Rejection(.invalidRequest, "The member permissions must be an array of strings, 64 at most.")
            }
            try body(element)
            count += 1
            element = next(element)
        }
    }
}
