internal import LLBytes
package import LLJOSE
package import LimitedLogin

/// A login that a caller asks about: the credential, and what ties it to the login. `POST /verify` takes it in JSON,
/// `POST /token` in a form.
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
        var hasIssuedNonce = false
        let end = document.next(document.root)
        var name = document.firstChild(document.root)
        while name < end {
            try read(name, document, body, &hasIssuedNonce)
            name = document.next(name + 1)
        }
        guard !token.isEmpty else {
            throw Rejection(.invalidRequest, "The member id_token is missing, and there is no access_token.")
        }
        expectation.binding.settle(issuedNonce: hasIssuedNonce)
        if isAccessToken { try requireNonceOfAccessToken() }
    }

    private mutating func read(
        _ name: Int,
        _ document: borrowing JSONDocument,
        _ body: Span<UInt8>,
        _ hasIssuedNonce: inout Bool
    ) throws(Rejection) {
        if document.string(name, equals: isAccessToken ? "access_token" : "id_token", in: body) {
            token = try document.text(name, in: body)
        } else if document.string(name, equals: "nonce", in: body) {
            expectation.binding.nonce = .nonce(try nonce(name, document, body))
        } else if document.string(name, equals: "raw_nonce", in: body), !isAccessToken {
            expectation.binding.nonce = .rawNonce(try nonce(name, document, body))
        } else if document.string(name, equals: "issued_nonce", in: body) {
            hasIssuedNonce = try document.flag(name, in: body)
        } else if document.string(name, equals: "subject", in: body) {
            expectation.binding.subject = try document.text(name, in: body)
        } else if document.string(name, equals: "app_id", in: body) {
            let appID = try document.anyText(name, in: body)
            guard !appID.isEmpty || isAccessToken else { throw Rejection(.unknownApp, "The member app_id is empty.") }
            expectation.appIDBytes = appID
        } else if document.string(name, equals: "permissions", in: body) {
            permissions = try document.permissions(name + 1, in: body, ofLimitedLogin: !isAccessToken)
        } else if isAccessToken {
            try readOfAccessToken(name, document, body)
        } else if document.string(name, equals: "key_thumbprint", in: body) {
            expectation.keyThumbprintBytes = try document.text(name, in: body)
        } else if document.string(name, equals: "access_token", in: body) {
            expectation.accessTokenBytes = try document.text(name, in: body)
        } else if document.string(name, equals: "auth_nonce", in: body) {
            throw Rejection(
                .invalidRequest,
                "The member auth_nonce is for an access token alone: an id token carries its nonce itself."
            )
        } else {
            throw RequestMistake.unknownMember(document.string(name, in: body), known: Self.members)
        }
    }

    private mutating func readOfAccessToken(
        _ name: Int,
        _ document: borrowing JSONDocument,
        _ body: Span<UInt8>
    ) throws(Rejection) {
        switch document.string(name, in: body) {
        case "auth_nonce": hasAuthNonce = try document.flag(name, in: body)
        case "raw_nonce", "key_thumbprint":
            throw Rejection(
                .invalidRequest,
                "Facebook hashes no nonce of an access token and binds it to no device, so neither raw_nonce nor "
                    + "key_thumbprint can be given with one."
            )
        case let member: throw RequestMistake.unknownMember(member, known: Self.membersOfAccessToken)
        }
    }

    private func nonce(
        _ name: Int,
        _ document: borrowing JSONDocument,
        _ body: Span<UInt8>
    ) throws(Rejection) -> [UInt8] {
        guard expectation.binding.nonce == nil else { throw RequestMistake.severalNonces }
        let nonce = try document.anyText(name, in: body, .invalidNonce)
        // The verdict on an id token judges the nonce's form itself.
        guard !isAccessToken || Nonce.isValid(nonce.span) else { throw .invalidNonce }
        guard !nonce.isEmpty else {
            throw Rejection(.invalidNonce, "The member \(document.string(name, in: body)) is empty.")
        }
        return nonce
    }

    private func requireNonceOfAccessToken() throws(Rejection) {
        let hasNonce = expectation.binding.nonce != nil
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
}

/// The value of a member, by the node of its name.
extension JSONDocument {
    func anyText(
        _ name: Int,
        in body: Span<UInt8>,
        _ code: Rejection.Code = .invalidRequest
    ) throws(Rejection) -> [UInt8] {
        guard isString(name + 1) else {
            throw Rejection(code, "The member \(string(name, in: body)) must be a string.")
        }
        var text: [UInt8] = []
        appendString(name + 1, in: body, to: &text)
        return text
    }

    /// A string that is not empty.
    func text(_ name: Int, in body: Span<UInt8>) throws(Rejection) -> [UInt8] {
        let text = try anyText(name, in: body)
        guard !text.isEmpty else { throw Rejection(.invalidRequest, "The member \(string(name, in: body)) is empty.") }
        return text
    }

    /// True. The meaning of false would be unclear, so the flag must be left out instead.
    func flag(_ name: Int, in body: Span<UInt8>) throws(Rejection) -> Bool {
        guard kind(name + 1) == .true else {
            let member = string(name, in: body)
            throw Rejection(.invalidRequest, "The member \(member) can only be true; leave it out otherwise.")
        }
        return true
    }

    /// The names in a list of permissions, each once.
    func permissions(
        _ list: Int,
        in body: Span<UInt8>,
        ofLimitedLogin isLimited: Bool
    ) throws(Rejection) -> [String] {
        guard kind(list) == .array else {
            throw Rejection(.invalidRequest, "The member permissions must be an array of strings.")
        }
        var names: [String] = []
        // There are twelve permissions of Limited Login, and a list may contain duplicates.
        for (index, element) in children(of: list).enumerated() {
            guard isString(element), index < 64 else {
                throw Rejection(.invalidRequest, "The member permissions must be an array of strings, 64 at most.")
            }
            let name = string(element, in: body)
            guard !isLimited || Permission(rawValue: name) != nil else {
                throw RequestMistake.unknownPermission(.invalidPermission, name)
            }
            guard PermissionName.isValid(name) else {
                throw Rejection(.invalidPermission, "A permission's name is 1 to 64 of [a-z_.].")
            }
            if !names.contains(name) { names.append(name) }
        }
        return names
    }
}
