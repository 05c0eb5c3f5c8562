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
        var name = document.firstChild(document.root)
        while name < document.next(document.root) {
            let (member, value) = (document.string(name, in: body), name + 1)
            switch (member, isAccessToken) {
            case ("id_token", _), ("access_token", true): token = try document.text(member, value, in: body)
            case ("access_token", false): expectation.accessTokenBytes = try document.text(member, value, in: body)
            case ("nonce", _), ("raw_nonce", false):
                guard expectation.binding.nonce == nil else { throw RequestMistake.severalNonces }
                let nonce = try nonce(member, value, document, body)
                expectation.binding.nonce = member == "nonce" ? .nonce(nonce) : .rawNonce(nonce)
            case ("issued_nonce", _): hasIssuedNonce = try document.flag(member, value)
            case ("auth_nonce", true): hasAuthNonce = try document.flag(member, value)
            case ("subject", _): expectation.binding.subject = try document.text(member, value, in: body)
            case ("app_id", _):
                let appID = try document.anyText(member, value, in: body)
                guard !appID.isEmpty || isAccessToken else {
                    throw Rejection(.unknownApp, "The member app_id is empty.")
                }
                expectation.appIDBytes = appID
            case ("permissions", _):
                permissions = try document.permissions(value, in: body, ofLimitedLogin: !isAccessToken)
            case ("key_thumbprint", false): expectation.keyThumbprintBytes = try document.text(member, value, in: body)
            case ("raw_nonce", true), ("key_thumbprint", true):
                throw Rejection(
                    .invalidRequest,
                    "Facebook hashes no nonce of an access token and binds it to no device, so neither raw_nonce nor "
                        + "key_thumbprint can be given with one."
                )
            case ("auth_nonce", false):
                throw Rejection(
                    .invalidRequest,
                    "The member auth_nonce is for an access token alone: an id token carries its nonce itself."
                )
            default:
                let known = isAccessToken ? Self.membersOfAccessToken : Self.members
                throw RequestMistake.unknownMember(member, known: known)
            }
            name = document.next(value)
        }
        guard !token.isEmpty else {
            throw Rejection(.invalidRequest, "The member id_token is missing, and there is no access_token.")
        }
        expectation.binding.settle(issuedNonce: hasIssuedNonce)
        if isAccessToken { try requireNonceOfAccessToken() }
    }

    private func nonce(
        _ member: String,
        _ value: Int,
        _ document: borrowing JSONDocument,
        _ body: Span<UInt8>
    ) throws(Rejection) -> [UInt8] {
        guard document.isString(value) else { throw Rejection(.invalidNonce, "The member \(member) must be a string.") }
        let nonce = try document.anyText(member, value, in: body)
        // The verdict on an id token judges the nonce's form itself.
        guard !isAccessToken || Nonce.isValid(nonce.span) else { throw .invalidNonce }
        guard !nonce.isEmpty else { throw Rejection(.invalidNonce, "The member \(member) is empty.") }
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

extension JSONDocument {
    /// A member's string.
    func anyText(_ member: String, _ value: Int, in body: Span<UInt8>) throws(Rejection) -> [UInt8] {
        guard isString(value) else { throw Rejection(.invalidRequest, "The member \(member) must be a string.") }
        var text: [UInt8] = []
        appendString(value, in: body, to: &text)
        return text
    }

    /// A member's string, which must not be empty.
    func text(_ member: String, _ value: Int, in body: Span<UInt8>) throws(Rejection) -> [UInt8] {
        let text = try anyText(member, value, in: body)
        guard !text.isEmpty else { throw Rejection(.invalidRequest, "The member \(member) is empty.") }
        return text
    }

    /// True. The meaning of false would be unclear, so the flag must be left out instead.
    func flag(_ member: String, _ value: Int) throws(Rejection) -> Bool {
        guard kind(value) == .true else {
            throw Rejection(.invalidRequest, "The member \(member) can only be true; leave it out otherwise.")
        }
        return true
    }

    /// The names in a list of permissions, each once.
    /// - Parameter isLimited: True if all must be within the scope of Limited Login.
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
