internal import LLBytes
internal import LLJOSE

/// Makes a standard token of your own from a verified Facebook login.
///
/// Access tokens follow RFC 9068 (`typ: at+jwt`), id tokens OpenID Connect Core. Both name the person, the Facebook app
/// and the time of the login.
public struct TokenIssuer: Sendable {
    /// The kind of a token.
    @nonexhaustive  // SE-0487
    public enum Kind: Sendable {
        /// An access token (RFC 9068).
        case accessToken
        /// An id token (OpenID Connect Core section 2).
        case idToken
    }

    /// The time by which a login may be ahead, in seconds: the greatest clock skew of its verdict, and that of a callback.
    private static let greatestLead = Double(2 * VerificationLimits.clockSkewSeconds)

    /// The `typ` of access tokens.
    @nonexhaustive  // SE-0487
    public enum AccessTokenType: String, Sendable, CaseIterable {
        /// The type of RFC 9068 section 2.1.
        case accessToken = "at+jwt"
        /// The type for consumers that refuse `at+jwt`.
        case plain = "JWT"
    }

    /// A claim about the person that a token may have.
    public struct Claim: RawRepresentable, Hashable, Sendable, CaseIterable {
        package let name: ClaimName

        /// All of them.
        public static let allCases = PersonalClaim.told.map { Claim($0.claim) }
        /// The whole name.
        public static let name = Claim(.name)
        /// The first name.
        public static let givenName = Claim(.givenName)
        /// The middle name.
        public static let middleName = Claim(.middleName)
        /// The last name.
        public static let familyName = Claim(.familyName)
        /// The e-mail address. `email_verified` is false, because Facebook does not say that it confirmed the address.
        public static let email = Claim(.email)
        /// The URL of the profile's picture.
        public static let picture = Claim(.picture)

        init(_ name: ClaimName) { self.name = name }

        /// The claim with this name in a token; nil if there is none.
        public init?(rawValue: String) {
            guard let claim = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
            self = claim
        }

        /// The name in a token, such as `given_name`.
        public var rawValue: String { name.spelling }
    }

    /// The login for which a token is made: a verified one.
    public struct Login: Sendable, Redacted {
        /// The Facebook app.
        public let appID: String
        /// The person, under an ID that only this app knows.
        public let userID: String
        /// The time at which Facebook issued the credential of the login.
        public package(set) var authenticatedAt: NumericDate
        /// The time at which that credential expires; nil if it does not expire.
        public let expiresAt: NumericDate?
        /// The RFC 7638 thumbprint of the device's key that the login is bound to.
        public let keyThumbprint: String?
        /// The claims about the person; empty texts are left out.
        let claims: [Claim: String]

        package init(
            appID: String,
            userID: String,
            authenticatedAt: NumericDate,
            expiresAt: NumericDate?,
            keyThumbprint: String? = nil,
            claims: [Claim: String] = [:]
        ) {
            (self.appID, self.userID, self.authenticatedAt) = (appID, userID, authenticatedAt)
            (self.expiresAt, self.keyThumbprint, self.claims) = (expiresAt, keyThumbprint, claims)
        }

        /// The login of an id token. The new token is bound to the same key of a device.
        /// - Throws: ``InvalidExpectation`` if the token is bound to a key that it does not name in the way of RFC 9449
        ///   section 6.1: the new token would be a plain Bearer.
        public init(_ verified: VerifiedToken) throws(InvalidExpectation) {
            let token = verified.authenticationToken
            guard token.keyThumbprint != "" else {
                throw InvalidExpectation("The token is bound to a key that it does not name (cnf without jkt).")
            }
            self.init(
                appID: token.audience,
                userID: token.subject,
                authenticatedAt: token.issuedAt,
                expiresAt: token.expiresAt,
                keyThumbprint: token.keyThumbprint,
                claims: verified.profile.told
            )
        }

        /// The login of an access token. If Graph does not tell its time of issue, it counts as issued two hours before its
        /// end, or in 1970 if it lives longer.
        public init(_ verified: VerifiedAccessToken, now: NumericDate) {
            let token = verified.inspection
            self.init(
                appID: token.appID,
                userID: token.userID,
                authenticatedAt: token.earliestIssue(now: now),
                expiresAt: token.expiresAt,
                claims: verified.profile.told
            )
        }
    }

    /// A new token.
    public struct Token: Sendable, Equatable, Redacted {
        /// The JWS in compact serialization.
        public let value: String
        /// The lifetime, in whole seconds.
        public let lifetime: Duration
        /// The granted scope (RFC 6749 section 3.3), as in the token; nil if there is none.
        public let scope: String?
    }

    /// The rules for the content of the tokens.
    public let policy: TokenIssuerPolicy
    /// The keys that sign and verify.
    public let keys: SigningKeySet
    private let accessTokenHeader: [UInt8]
    private let idTokenHeader: [UInt8]

    /// An issuer of tokens.
    public init(policy: TokenIssuerPolicy, keys: SigningKeySet) {
        self.policy = policy
        self.keys = keys
        accessTokenHeader = Self.header(keys.keys[0], policy.accessTokenType)
        idTokenHeader = Self.header(keys.keys[0], .plain)
    }

    private static func header(_ key: SigningKey, _ type: AccessTokenType) -> [UInt8] {
        let header = #"{"alg":"\#(key.algorithm.rawValue)","typ":"\#(type.rawValue)","kid":"\#(key.keyID)"}"#
        return Array("\(Base64URL.encode(header.utf8)).".utf8)
    }

    /// Makes a token.
    /// - Parameters:
    ///   - login: The verified login.
    ///   - kind: The kind of the token.
    ///   - audience: An audience of the policy; the first one if nil.
    ///   - scope: The wanted part of the policy's scope, separated by spaces; all of it if nil.
    ///   - tokenID: `jti`, a name that no other token has.
    ///   - now: The time of issue; fractions of a second are ignored.
    /// - Throws: ``Rejection`` if the credential of the login has expired, ``InvalidExpectation`` if the audience or the scope is
    ///   not among the policy's, an ID is empty, or the login is ten minutes ahead, ``Unavailable`` if OpenSSL fails.
    public func token(
        for login: Login,
        kind: Kind = .accessToken,
        audience: String? = nil,
        scope: String? = nil,
        tokenID: String,
        now: NumericDate
    ) throws -> Token {
        let granted = try policy.grantedScope(scope)
        let audience = audience ?? policy.audiences[0]
        guard policy.audiences.contains(where: { $0.utf8.elementsEqual(audience.utf8) }) else {
            throw InvalidExpectation(rejection: Rejection(.invalidTarget))
        }
        guard ![login.appID, login.userID, tokenID].contains("") else { throw InvalidExpectation("An ID is empty.") }
        guard login.authenticatedAt.secondsSince1970 <= now.secondsSince1970 + Self.greatestLead else {
            throw InvalidExpectation("The login lies in the future.")
        }
        let issuedAt = now.wholeSeconds
        var end = issuedAt + policy.lifetime.components.seconds
        if let last = login.expiresAt { end = min(end, last.wholeSeconds) }
        guard end > issuedAt, login.expiresAt.map({ now < $0 }) != false else {
            throw Rejection(.expired, "The subject token has ended.")
        }
        var payload: [UInt8] = [UInt8(ascii: "{")]
        // Most payloads fit; a longer one makes the array grow.
        payload.reserveCapacity(1_024)
        JSONWriter.member("iss", policy.issuer, to: &payload)
        JSONWriter.member("sub", login.userID, to: &payload)
        JSONWriter.member("aud", audience, to: &payload)
        JSONWriter.member(kind == .accessToken ? "client_id" : "azp", login.appID, to: &payload)
        JSONWriter.member("iat", Int(issuedAt), to: &payload)
        JSONWriter.member("exp", Int(end), to: &payload)
        JSONWriter.member("auth_time", Int(login.authenticatedAt.wholeSeconds), to: &payload)
        JSONWriter.member("jti", tokenID, to: &payload)
        JSONWriter.member("idp", "facebook", to: &payload)
        if !policy.scopeIsClaim { JSONWriter.member("scope", granted, to: &payload) }
        if let thumbprint = login.keyThumbprint {
            JSONWriter.raw(#","cnf":{"#, to: &payload)
            JSONWriter.member("jkt", thumbprint, to: &payload)
            payload.append(UInt8(ascii: "}"))
        }
        for claim in policy.claims {
            guard let text = login.claims[claim], !text.isEmpty else { continue }
            payload += #","\#(claim.rawValue)":"#.utf8
            JSONWriter.string(text, to: &payload)
            if claim == .email { payload.append(#","email_verified":false"#) }
        }
        payload += policy.extraMembers.utf8
        payload.append(UInt8(ascii: "}"))
        var value = kind == .accessToken ? accessTokenHeader : idTokenHeader
        Base64URL.append(encoding: payload.span, to: &value)
        guard let signature = try? keys.keys[0].key.signature(for: value) else {
            throw Unavailable("OpenSSL cannot sign.")
        }
        value.append(UInt8(ascii: "."))
        Base64URL.append(encoding: signature.span, to: &value)
        let text = String(decoding: value, as: UTF8.self)
        return Token(value: text, lifetime: .seconds(end - issuedAt), scope: granted)
    }
}

/// The rules for the tokens of a ``TokenIssuer``: issuer, audiences, lifetime and claims.
public struct TokenIssuerPolicy: Sendable, Equatable {
    /// The default lifetime of a token: 600 s. For so long a revoked login is valid at a consumer that asks nobody.
    public static let defaultLifetime = Duration.seconds(600)
    package static let lifetimeRange = 60...3_600
    /// Claims that no configuration may set: those about the token itself, and those about the person.
    private static let reserved: Set<String> = Set(
        [
            "iss", "sub", "aud", "exp", "nbf", "iat", "jti", "client_id", "azp", "auth_time", "acr", "amr", "nonce",
            "cnf", "idp", "at_hash", "c_hash", "s_hash", "sid", "act", "may_act", "email_verified",
            // /introspect writes these two beside the claims.
            "active", "token_type",
        ] + TokenIssuer.Claim.allCases.map(\.rawValue)
    )

    /// `iss`: an `https` URL of at most 1,024 visible ASCII characters without user, query and fragment.
    public let issuer: String
    /// The audiences that a token may have; the first one is the default. Each has 1 to 1,024 visible ASCII characters; the
    /// issuer itself if you name none.
    public let audiences: [String]
    /// The lifetime of a token: 60 to 3,600 s, without fractions of a second. A token never outlives the credential of its
    /// login.
    public let lifetime: Duration
    /// `typ` of access tokens.
    public let accessTokenType: TokenIssuer.AccessTokenType
    /// The claims about the person in the tokens.
    public let claims: [TokenIssuer.Claim]
    /// The scope that a token may have, word by word (RFC 6749 section 3.3).
    public let scopes: [String]
    /// The additional claims as members of an object, each with a comma before it.
    let extraMembers: String
    /// True if the scope is one of the additional claims, so that every token has all of it.
    let scopeIsClaim: Bool

    /// Makes a policy from these values, if each is in its range.
    /// - Parameters:
    ///   - issuer: An `https` URL of at most 1,024 visible ASCII characters without user, query and fragment.
    ///   - audiences: Each has 1 to 1,024 visible ASCII characters; the issuer itself if there are none.
    ///   - lifetime: 60 to 3,600 s; fractions of a second are ignored.
    ///   - accessTokenType: The `typ` of access tokens.
    ///   - claims: The claims about the person in the tokens.
    ///   - extraClaims: A JSON object of at most 1 KiB, without registered claims. Its `scope` is the scope of every token.
    ///   - scope: The scope that a token may have, words separated by spaces.
    public init(
        issuer: String,
        audiences: [String] = [],
        lifetime: Duration = defaultLifetime,
        accessTokenType: TokenIssuer.AccessTokenType = .accessToken,
        claims: [TokenIssuer.Claim] = [],
        extraClaims: String = "{}",
        scope: String = ""
    ) throws(InvalidConfiguration) {
        try Self.require(issuer: issuer)
        for audience in audiences {
            try InvalidConfiguration.unless(
                Self.isPlain(audience),
                "\(audience.debugDescription) is no audience: give 1 to 1,024 visible ASCII characters without \" and \\."
            )
        }
        try InvalidConfiguration.unless(
            Self.lifetimeRange.contains(Int(lifetime.components.seconds)),
            "A lifetime of \(lifetime) is out of range: 60 to 3,600 s."
        )
        try InvalidConfiguration.unless(
            scope.isEmpty || Self.isPlain(scope.replacing(" ", with: "_")),
            "\(scope.debugDescription) is no scope: give words of visible ASCII characters without \" and \\."
        )
        let claim: String?
        (extraMembers, claim) = try Self.members(extraClaims)
        try InvalidConfiguration.unless(
            claim == nil || scope.isEmpty,
            "The additional claims must not have scope: the scope of tokens is set."
        )
        scopeIsClaim = claim != nil
        scopes = (claim ?? scope).split(separator: " ").map(String.init)
        self.issuer = issuer
        self.audiences = audiences.isEmpty ? [issuer] : audiences
        self.lifetime = .seconds(lifetime.components.seconds)
        self.accessTokenType = accessTokenType
        // Each once: a member that stands twice is refused everywhere.
        self.claims = TokenIssuer.Claim.allCases.filter { claims.contains($0) }
    }

    package func grantedScope(_ wanted: String?) throws(InvalidExpectation) -> String? {
        let words = (wanted ?? "").split(separator: " ").map(String.init)
        guard words.allSatisfy(scopes.contains) else { throw InvalidExpectation(rejection: Rejection(.invalidScope)) }
        let granted = words.isEmpty || scopeIsClaim ? scopes : scopes.filter(words.contains)
        return granted.isEmpty ? nil : granted.joined(separator: " ")
    }

    /// RFC 8414 section 2: an `https` URL without query and fragment.
    private static func require(issuer: String) throws(InvalidConfiguration) {
        let authority = issuer.utf8.dropFirst("https://".utf8.count).prefix { $0 != UInt8(ascii: "/") }
        try InvalidConfiguration.unless(
            isPlain(issuer) && issuer.hasPrefix("https://") && isAuthority(authority)
                && !issuer.utf8.contains { "?#@".utf8.contains($0) } && !issuer.hasSuffix("/"),
            "\(issuer.debugDescription) is no issuer: give an https URL without user, query, fragment and slash at its end."
        )
    }

    /// True for a host, and a port if there is a colon (RFC 3986 section 3.2).
    private static func isAuthority(_ text: Substring.UTF8View) -> Bool {
        guard text.last != UInt8(ascii: "]"), let colon = text.lastIndex(of: UInt8(ascii: ":")) else {
            return !text.isEmpty
        }
        let port = DecimalNumber.parse(text[text.index(after: colon)...]) ?? 0
        return colon > text.startIndex && (1...65_535).contains(port)
    }

    /// True if the text is its own JSON string: 1 to 1,024 visible ASCII characters without `"` and `\`.
    private static func isPlain(_ text: String) -> Bool {
        (1...1_024).contains(text.utf8.count) && text.utf8.allSatisfy(ASCII.isVisible)
            && JSONText.isPlain(text.utf8.span)
    }

    private static func members(_ text: String) throws(InvalidConfiguration) -> (String, scope: String?) {
        let bytes = Array(text.utf8)
        // Enough for a role and a few names.
        try InvalidConfiguration.unless(bytes.count <= 1_024, "The additional claims have more than 1,024 bytes.")
        guard let object = JSONObject(bytes, limits: VerificationLimits.payload) else {
            throw InvalidConfiguration("The additional claims must be one JSON object that names no member twice.")
        }
        var members = ""
        for name in object.document.children(of: object.document.root) {
            let text = object.string(name)
            guard !reserved.contains(text) else {
                throw InvalidConfiguration("The additional claims must not have \(text): the token sets it.")
            }
            let range = object.document.range(name + 1)
            let value = String(decoding: bytes[range], as: UTF8.self)
            members += ",\(JSONText.quoted(text)):" + (object.document.isString(name + 1) ? "\"\(value)\"" : value)
        }
        try InvalidConfiguration.unless(
            object.member("scope") == nil || object.string("scope") != nil,
            "The scope among the additional claims must be a text (RFC 6749 section 3.3)."
        )
        return (members, object.string("scope"))
    }
}
