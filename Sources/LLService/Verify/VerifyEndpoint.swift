internal import LLHTTP
internal import LLJOSE
internal import LLStores
internal import LimitedLogin

/// `POST /verify`: reads the request, has the token judged, and answers from the verified bytes.
enum VerifyEndpoint {
    /// The greatest body, in bytes: the greatest token, and half its size for the rest of the body.
    static let bodyLimit = 49_152

    static let answer: Route.Answer = { worker, exchange, bytes throws(Rejection) in
        worker.subject = .idToken
        let request = try LoginRequest(bytes.extracting(exchange.body), with: &worker.document)
        guard !request.isAccessToken else {
            return try AccessTokenEndpoint.answer(worker, request, &exchange, bytes)
        }
        guard let claims = try judge(request, worker, &exchange, bytes) else {
            return .later(until: worker.judge.waitsUntil)
        }
        let (payload, keyID) = (worker.judge.workspace.payload, worker.judge.workspace.keyID)
        let asked = request.permissions.map { names in
            PermissionSet(names.compactMap(Permission.init(rawValue:)).map { PermissionSet($0) })
        }
        let isRefresh = request.expectation.binding.isRefresh
        let person = worker.auditName(claims, payload)
        let uses = uses(claims, request.expectation, worker)
        // Without a closure the usual answer takes 1 % less.
        guard !uses.isEmpty else {
            write(claims, payload, keyID, asked, isRefresh, &exchange.response)
            return .done(person: person)
        }
        return try ReplayGuard.accept(person, using: uses, worker, &exchange, bytes) { response in
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

    /// Judges the id token that a session begins with; nil if it must wait for keys.
    static func judge(
        _ request: LoginRequest,
        _ worker: WorkerContext,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>
    ) throws(Rejection) -> VerifiedClaims? {
        let mustBeIssued = request.expectation.binding.requiresIssuedNonce
        guard !mustBeIssued || worker.settings.verifier.nonces != nil else { throw .noNonceIssuer }
        let claims = try worker.judge.judge(
            request.token.span,
            request.expectation,
            verifier: worker.settings.verifier,
            &exchange,
            bytes
        )
        if claims != nil { worker.count(request.expectation.binding.givenNonce, &exchange, bytes) }
        return claims
    }

    /// The entries that a good token uses up.
    static func uses(
        _ claims: VerifiedClaims,
        _ expectation: TokenExpectation,
        _ worker: WorkerContext
    ) -> [ReplayEntry?] {
        let (nonce, isOnce) = (worker.judge.workspace.recognizedNonce, worker.settings.rejectsReplays)
        guard nonce != nil || isOnce else { return [] }
        return ReplayEntry.all(
            claims,
            worker.judge.workspace.payload.span,
            nonce: nonce,
            usesToken: isOnce,
            accessToken: expectation.accessTokenBytes
        )
    }

    static func addFields(to response: inout HTTPResponse) {
        response.addField("Content-Type: application/json")
        response.addField("Cache-Control: no-store")
    }
}
