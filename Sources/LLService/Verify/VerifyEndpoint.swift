internal import LLBytes
internal import LLHTTP
package import LLJOSE
internal import LLStores
package import LimitedLogin

/// `POST /verify`: reads the request, has the token judged, and answers from the verified bytes.
enum VerifyEndpoint {
    /// The greatest body, in bytes: the greatest token, and half its size for the rest of the body.
    static let bodyLimit = 49_152

    static let answer: Route.Answer = { worker, exchange, bytes throws(Rejection) in
        worker.subject = .idToken
        let request = try LoginRequest(bytes.extracting(exchange.body), with: &worker.document)
        guard !request.isAccessToken else {
            return try AccessTokenEndpoint.answer(worker, request, &exchange, bytes) { verified, _ in
                { AccessTokenAnswer.write(verified, asked: request.permissions, to: &$0.body) }
            }
        }
        guard let claims = try worker.judge(request, &exchange, bytes) else {
            return .later(until: worker.judge.waitsUntil)
        }
        let (payload, keyID) = (worker.judge.workspace.payload, worker.judge.workspace.keyID)
        let asked = request.permissions.map { names in
            PermissionSet(names.compactMap(Permission.init(rawValue:)).map { PermissionSet($0) })
        }
        let isRefresh = request.expectation.binding.isRefresh
        let person = worker.auditName(claims, payload)
        let uses = worker.uses(claims, request.expectation)
        // Without a closure the usual answer takes 1 % less.
        guard !uses.isEmpty else {
            let (payload, keyID) = (payload.span, keyID.span)
            addFields(to: &exchange.response)
            VerifyAnswer.write(claims, payload, keyID, asked: asked, isRefresh: isRefresh, to: &exchange.response.body)
            return .done(person: person)
        }
        return try ReplayGuard.accept(person, using: uses, worker, &exchange, bytes) { response in
            let (payload, keyID) = (payload.span, keyID.span)
            addFields(to: &response)
            VerifyAnswer.write(claims, payload, keyID, asked: asked, isRefresh: isRefresh, to: &response.body)
        }
    }

    static func addFields(to response: inout HTTPResponse) {
        response.addField("Content-Type: application/json")
        response.addField("Cache-Control: no-store")
    }
}

extension WorkerContext {
    /// Judges the id token that a session begins with; nil if it must wait for keys.
    func judge(
        _ request: LoginRequest,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>
    ) throws(Rejection) -> VerifiedClaims? {
        let mustBeIssued = request.expectation.binding.issue == .required
        guard !mustBeIssued || settings.verifier.nonces != nil else { throw .noNonceIssuer }
        let token = request.token.span
        let claims = try judge.judge(token, request.expectation, verifier: settings.verifier, &exchange, bytes)
        if claims != nil { count(request.expectation.binding.nonce, &exchange, bytes) }
        return claims
    }

    func uses(_ claims: VerifiedClaims, _ expectation: TokenExpectation) -> [ReplayEntry?] {
        let (nonce, isOnce) = (judge.workspace.recognizedNonce, settings.rejectsReplays)
        guard nonce != nil || isOnce else { return [] }
        let (payload, other) = (judge.workspace.payload.span, expectation.accessTokenBytes)
        return ReplayEntry.all(claims, payload, nonce: nonce, usesToken: isOnce, accessToken: other)
    }
}

/// A login that a caller asks about: the credential, and what ties it to the login. It comes in JSON or in a form.
package struct LoginRequest: Sendable {
    private static let members = [
        "id_token", "nonce", "raw_nonce", "issued_nonce", "subject", "app_id", "permissions", "key_thumbprint",
        "access_token",
    ]
    private static let membersOfAccessToken = [
        "access_token", "app_id", "subject", "permissions", "auth_nonce", "nonce", "issued_nonce",
    ]

    package var token: [UInt8] = []
    /// True if the credential is an access token alone.
    package var isAccessToken = false
    package var expectation = TokenExpectation()
    var hasAuthNonce = false
    private(set) var permissions: [String]?

    init() {}

    /// Reads the body of `POST /verify` strictly.
    package init(_ body: Span<UInt8>, with document: inout JSONDocument) throws(Rejection) {
        try document.parseObject(body)
        isAccessToken =
            document.member("id_token", of: document.root, in: body) == nil
            && document.member("access_token", of: document.root, in: body) != nil
        let end = document.next(document.root)
        var name = document.firstChild(document.root)
        while name < end {
            try read(name, document, body)
            name = document.next(name + 1)
        }
        guard !token.isEmpty else {
            throw Rejection(.invalidRequest, "The member id_token is missing, and there is no access_token.")
        }
        guard isAccessToken else { return }
        let hasNonce = expectation.binding.requiresNonce
        guard hasAuthNonce || !hasNonce else {
            throw Rejection(
                .invalidRequest,
                "An access token carries no nonce. Give auth_nonce: true as well if the web dialog was opened with "
                    + "auth_type=reauthenticate and this auth_nonce; else send the login's id token, or leave the nonce out."
            )
        }
        guard !hasAuthNonce || hasNonce else {
            throw Rejection(.invalidRequest, "Beside auth_nonce give nonce, issued_nonce or both.")
        }
    }

    private mutating func read(_ name: Int, _ document: borrowing JSONDocument, _ body: Span<UInt8>) throws(Rejection) {
        if document.string(name, equals: isAccessToken ? "access_token" : "id_token", in: body) {
            token = try document.text(name, in: body)
        } else if document.string(name, equals: "nonce", in: body) {
            expectation.binding.nonce = try nonce(name, document, body)
        } else if document.string(name, equals: "raw_nonce", in: body), !isAccessToken {
            (expectation.binding.nonce, expectation.binding.isRaw) = (try nonce(name, document, body), true)
        } else if document.string(name, equals: "issued_nonce", in: body) {
            expectation.binding.issue = try document.flag(name, in: body) ? .required : .recognized
        } else if document.string(name, equals: "subject", in: body) {
            expectation.binding.subject = try document.text(name, in: body)
        } else if document.string(name, equals: "app_id", in: body) {
            let appID = try document.anyText(name, in: body)
            guard !appID.isEmpty || isAccessToken else { throw Rejection(.unknownApp, "The member app_id is empty.") }
            expectation.appIDBytes = appID
        } else if document.string(name, equals: "permissions", in: body) {
            permissions = try document.permissions(name + 1, in: body, ofLimitedLogin: !isAccessToken)
        } else {
            switch (document.string(name, in: body), isAccessToken) {
            case ("key_thumbprint", false): expectation.keyThumbprintBytes = try document.text(name, in: body)
            case ("access_token", false): expectation.accessTokenBytes = try document.text(name, in: body)
            case ("auth_nonce", true): hasAuthNonce = try document.flag(name, in: body)
            case ("auth_nonce", false):
                throw Rejection(
                    .invalidRequest,
                    "The member auth_nonce is for an access token alone: an id token carries its nonce itself."
                )
            case ("raw_nonce", true), ("key_thumbprint", true):
                throw Rejection(
                    .invalidRequest,
                    "Facebook hashes no nonce of an access token and binds it to no device, so neither raw_nonce nor "
                        + "key_thumbprint can be given with one."
                )
            case (let member, _):
                let known = isAccessToken ? Self.membersOfAccessToken : Self.members
                throw RequestMistake.unknownMember(member, known: known)
            }
        }
    }

    private func nonce(_ name: Int, _ json: borrowing JSONDocument, _ body: Span<UInt8>) throws(Rejection) -> [UInt8] {
        guard expectation.binding.nonce == nil else { throw RequestMistake.severalNonces }
        let nonce = try json.anyText(name, in: body, .invalidNonce)
        // The verdict on an id token judges the nonce's form itself.
        guard !isAccessToken || Nonce.isValid(nonce.span) else { throw .invalidNonce }
        guard !nonce.isEmpty else {
            throw Rejection(.invalidNonce, "The member \(json.string(name, in: body)) is empty.")
        }
        return nonce
    }
}

/// Writes the answer to an accepted token straight from the bytes that were verified. A string claim is copied with its
/// escapes: the text between the quotes of a valid JSON string is valid in another one.
package enum VerifyAnswer {
    /// The greatest length of the answer without claims and key ID: 800 bytes of text, 700 of lists, 150 of numbers.
    private static let fixedByteCount = 2_048

    /// - Parameter asked: The permissions the caller needs; nil leaves out the list of missing ones.
    package static func write(
        _ claims: VerifiedClaims,
        _ payload: Span<UInt8>,
        _ keyID: Span<UInt8>,
        asked: PermissionSet?,
        isRefresh: Bool,
        to bytes: inout [UInt8]
    ) {
        // The ranges of the claims do not overlap, only the subject is written twice, and the payload follows. An
        // escape turns one byte into six.
        let most = 3 * payload.count + 6 * keyID.count + fixedByteCount
        bytes.append(addingCapacity: most) { (output: inout OutputSpan<UInt8>) in
            claims.writeToken(payload, keyID, &output)
            claims.writeProfile(payload, asked ?? PermissionSet(rawValue: 0), &output)
            if isRefresh { output.append(",\"refresh\":true") }
            if let asked { claims.writeMissing(asked, &output) }
            output.append(",\"claims\":")
            output.append(payload, 0..<payload.count)
            output.append("}")
        }
    }
}

extension VerifiedClaims {
    fileprivate func writeMissing(_ asked: PermissionSet, _ bytes: inout OutputSpan<UInt8>) {
        bytes.append(",\"missing_permissions\":")
        bytes.append(PermissionSet.missing(satisfiedPermissions, asked: asked))
        let unverifiable = asked.intersection(.unverifiable)
        if !unverifiable.isEmpty {
            bytes.append(",\"unverifiable_permissions\":")
            bytes.append(unverifiable)
        }
    }

    fileprivate func writeToken(_ payload: Span<UInt8>, _ keyID: Span<UInt8>, _ bytes: inout OutputSpan<UInt8>) {
        bytes.append("{\"authentication_token\":{\"issuer\":\"", payload, issuer)
        bytes.append(",\"audience\":\"", payload, audience)
        bytes.append(",\"subject\":\"", payload, subject)
        bytes.append(",\"token_id\":\"", payload, tokenID)
        bytes.append(",\"nonce\":\"", payload, self[.nonce])
        bytes.append(",\"issued_at\":")
        bytes.append(issuedAt)
        bytes.append(",\"expires_at\":")
        bytes.append(expiresAt)
        bytes.append(",\"key_id\":")
        bytes.appendString(keyID)
        switch keyBinding {
        case .none: break
        case .key(let thumbprint): bytes.append(",\"key_thumbprint\":\"", payload, thumbprint)
        case .unreadable: bytes.append(",\"confirmation\":\"unreadable\"")
        }
        bytes.append(isLimited ? ",\"tracking\":\"limited\"}" : ",\"tracking\":\"enabled\"}")
    }

    fileprivate func writeProfile(_ payload: Span<UInt8>, _ asked: PermissionSet, _ bytes: inout OutputSpan<UInt8>) {
        bytes.append(",\"profile\":{\"user_id\":\"", payload, subject)
        let rows = PersonalClaim.table
        for index in rows.indices {
            let claim = rows[index].claim
            switch rows[index].kind {
            case .text:
                guard let range = self[claim] else { continue }
                bytes.append(name: rows[index].member)
                bytes.append("\"", payload, range)
                // Facebook does not say if the address is confirmed. Without this member a reader might assume it is.
                if case .email = claim { bytes.append(",\"email_verified\":false") }
            case .list:
                guard let range = self[claim] else { continue }
                bytes.append(name: rows[index].member)
                bytes.append(payload, range)
            case .birthday:
                guard let birthday else { continue }
                bytes.append(name: rows[index].member)
                bytes.append(UInt8(ascii: "\""))
                birthday.write(to: &bytes)
                bytes.append(UInt8(ascii: "\""))
            case .ageRange:
                guard let range = ageRange else { continue }
                bytes.append(name: rows[index].member)
                bytes.append(range)
            case .place:
                guard let place = self.place(claim) else { continue }
                bytes.append(name: rows[index].member)
                bytes.append("{\"id\":\"", payload, place.id)
                bytes.append(",\"name\":\"", payload, place.name)
                bytes.append(UInt8(ascii: "}"))
            }
        }
        bytes.append(",\"permissions\":")
        bytes.append(PermissionSet.shown(satisfiedPermissions, asked: asked))
        bytes.append(isLimited ? ",\"is_limited\":true}" : ",\"is_limited\":false}")
    }
}

extension OutputSpan where Element == UInt8 {
    @inline(__always)
    fileprivate mutating func append(name: StaticString) {
        append(",\"")
        append(name)
        append("\":")
    }

    fileprivate mutating func append(_ range: AgeRange) {
        append(UInt8(ascii: "{"))
        if let minimum = range.minimum {
            append("\"min\":")
            append(decimal: minimum)
        }
        if let maximum = range.maximum {
            append(range.minimum == nil ? "\"max\":" : ",\"max\":")
            append(decimal: maximum)
        }
        append(UInt8(ascii: "}"))
    }

    /// Inlined at each call: a few stores then write the constant, and no call copies it.
    @inline(__always)
    fileprivate mutating func append(_ opening: StaticString, _ payload: Span<UInt8>, _ text: Range<Int>?) {
        guard let text else { return }
        append(opening)
        append(payload, text)
        append(UInt8(ascii: "\""))
    }

    /// Every token seen has whole seconds; a fraction is legal (RFC 7519 section 2) and is kept.
    fileprivate mutating func append(_ date: NumericDate) {
        let seconds = date.secondsSince1970
        if let whole = Int(exactly: seconds) {
            append(decimal: whole)
        } else {
            for byte in "\(seconds)".utf8 { append(byte) }
        }
    }

    /// Writes the names in the order of `Permission`.
    fileprivate mutating func append(_ permissions: PermissionSet) {
        append(UInt8(ascii: "["))
        let start = count
        for permission in Permission.allCases where permissions.contains(permission) {
            append(UInt8(ascii: "\""))
            append(permission.name)
            append("\",")
        }
        if count > start { _ = removeLast() }
        append(UInt8(ascii: "]"))
    }
}
