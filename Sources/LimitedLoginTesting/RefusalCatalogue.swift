internal import LLBytes
package import LimitedLogin

private typealias Entry = CatalogueEntry

/// One token, and a verifier's correct decision on it.
package struct CatalogueEntry: Sendable {
    /// Lower-case letters, digits and `-`: the name of the token's file, and the end of the path `/login/…`.
    package let name: String
    package let fault: String
    /// The service's code for the refusal; nil for a good token.
    package let code: Rejection.Code?
    package private(set) var requestMembers: @Sendable (CatalogueWorkshop) -> [(name: String, value: String)] = {
        [("nonce", $0.nonce)]
    }
    /// A setting that is needed to refuse the token, and its value as JSON.
    package private(set) var setting: (name: String, value: String)?
    /// The number of times the token is presented; the outcome is that of the last time.
    package private(set) var presentations = 1
    package let token: @Sendable (CatalogueWorkshop) throws -> String

    init(
        _ name: String,
        _ code: Rejection.Code?,
        _ fault: String,
        presentations: Int = 1,
        _ token: @escaping @Sendable (CatalogueWorkshop) throws -> String
    ) {
        (self.name, self.code, self.fault) = (name, code, fault)
        (self.presentations, self.token) = (presentations, token)
    }

    private func with(_ change: (inout Self) -> Void) -> Self {
        var entry = self
        change(&entry)
        return entry
    }

    package static func named(_ name: String) -> CatalogueEntry? { all.first { $0.name == name } }
}

extension CatalogueEntry {
    /// Every good token, then every way in which a token is refused.
    package static let all: [CatalogueEntry] = [
        Entry("good", nil, "Nothing: the token is good.") { try $0.token() },
        Entry("older-key", nil, "Nothing: an older key signed it, which is still published.") {
            try $0.token(signedBy: $0.keys.older)
        },
        // The form.
        Entry("empty-signature", .malformedToken, "Its signature was cut off.") { try $0.unsigned(algorithm: "RS256") },
        Entry("padding", .malformedToken, "Its signature ends in the padding that base64url leaves out.") {
            try $0.token() + "=="
        },
        Entry("second-spelling", .malformedToken, "Its last character differs in bits that carry nothing.") {
            CatalogueWorkshop.respelled(try $0.token())
        },
        Entry("too-long", .tokenTooLong, "It has more than 32 KiB.") {
            try $0.token([("picture", FacebookJSON.string(String(repeating: "x", count: 32_768)))])
        },
        Entry("claims-are-a-list", .malformedToken, "Its payload is a JSON array.") {
            try $0.minted(payload: "[\($0.payload())]")
        },
        Entry("subject-twice", .malformedToken, "Its payload names sub twice.") {
            try $0.minted(payload: "{\"sub\":\"1000200030004000\"," + $0.payload().dropFirst())
        },
        Entry("algorithm-twice", .malformedToken, "Its header names alg twice.") {
            try $0.minted(header: "{\"alg\":\"none\"," + $0.header().dropFirst())
        },
        Entry("access-token", .notAnIDToken, "It is an access token.") { _ in CatalogueWorkshop.accessToken },
        Entry("other-type", .notAnIDToken, "Its typ says that it is an access token.") {
            try $0.minted(header: $0.header([("typ", "\"at+jwt\"")], without: "typ"))
        },
        Entry("unsigned", .malformedToken, "Its alg is none, and it has no signature.") {
            try $0.unsigned(algorithm: "none")
        },
        Entry("unsigned-misspelt", .unsupportedAlgorithm, "Its alg is nOnE, and its signature is noise.") {
            try $0.unsigned(algorithm: "nOnE") + "AAAA"
        },
        Entry(
            "shared-secret",
            .unsupportedAlgorithm,
            "Its alg is HS256, and the published key's PEM was taken as the secret."
        ) { try $0.signedWithPublicKey() },
        Entry("critical-header", .unsupportedCriticalHeader, "Its header demands an unknown extension.") {
            try $0.minted(header: $0.header([("crit", "[\"urn:example\"]"), ("urn:example", "true")]))
        },
        Entry("no-key-id", .missingKeyID, "Its header names no key.") {
            try $0.minted(header: $0.header(without: "kid"))
        },
        // The key and the signature.
        Entry("unknown-key", .unknownKey, "A key signed it that was never published.") {
            try $0.token(signedBy: $0.keys.stranger)
        },
        Entry("own-key", .unknownKey, "Its header brings the key that signed it.") {
            let stranger = $0.keys.stranger
            let header = $0.header([("jwk", stranger.jsonWebKey)], of: stranger)
            return try $0.minted(header: header, signedBy: stranger)
        },
        Entry("borrowed-key-id", .invalidSignature, "Another key signed it under a published key's name.") {
            try $0.minted(header: $0.header(), signedBy: $0.keys.stranger)
        },
        Entry("changed", .invalidSignature, "One byte of its payload was changed.") {
            let payload = try $0.payload()
            let changed = Base64URL.encode(payload.replacing("\"Doe\"", with: "\"Dow\"").utf8)
            return try $0.minted(payload: payload).replacing(Base64URL.encode(payload.utf8), with: changed)
        },
        // The claims.
        Entry("other-issuer", .invalidIssuer, "Another issuer's name stands in it.") {
            try $0.token([("iss", "\"https:\\/\\/facebook.example\"")])
        },
        Entry("other-app", .invalidAudience, "It is meant for another app.") {
            try $0.token([("aud", "\"999999999999999\"")])
        },
        Entry("several-apps", .invalidAudience, "It is meant for this app and another.") {
            try $0.token([("aud", "[\"\($0.audience)\",\"999999999999999\"]")])
        },
        Entry("other-party", .invalidAudience, "It was given to another party to use (azp).") {
            try $0.token([("azp", "\"999999999999999\"")])
        },
        Entry("expired", .expired, "Its hour is over.") {
            try $0.token([("iat", "\($0.now - 7_200)"), ("exp", "\($0.now - 3_600)")])
        },
        Entry("no-expiry", .missingClaim, "It never expires.") { try $0.token(without: "exp") },
        Entry("expiry-as-text", .malformedClaim, "Its exp is text.") {
            try $0.token([("exp", "\"\($0.now + 3_600)\"")])
        },
        Entry("issued-ahead", .notYetValid, "It was issued an hour from now.") {
            try $0.token([("iat", "\($0.now + 3_600)"), ("exp", "\($0.now + 7_200)")])
        },
        Entry("not-before-ahead", .notYetValid, "It is good only an hour from now (nbf).") {
            try $0.token([("nbf", "\($0.now + 3_600)"), ("exp", "\($0.now + 7_200)")])
        },
        Entry("too-old", .tooOld, "It was issued 20 minutes ago, and 10 are allowed.") {
            try $0.token([("iat", "\($0.now - 1_200)"), ("exp", "\($0.now + 2_400)")])
        }.with { $0.setting = ("max_token_age_seconds", "600") },
        Entry("no-subject", .missingClaim, "It names no person.") { try $0.token(without: "sub") },
        Entry("subject-as-number", .malformedClaim, "Its sub is a number.") {
            try $0.token([("sub", "2954873201847263")])
        },
        // The login.
        Entry("other-login", .nonceMismatch, "It is of another login.") { try $0.token() }
            .with { $0.requestMembers = { _ in [("nonce", "of-another-login")] } },
        Entry("no-nonce", .nonceMismatch, "Its nonce is empty: the login was begun without one.") {
            try $0.token([("nonce", "\"\"")])
        },
        Entry("other-person", .subjectMismatch, "It is of another person.") { try $0.token() }
            .with { $0.requestMembers = { _ in [("subject", "1000200030004000")] } },
        Entry("other-device", .keyThumbprintMismatch, "It is bound to another device's key.") {
            try $0.token([("cnf", "{\"jkt\":\"0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I\"}")])
        }.with { $0.requestMembers = { [("nonce", $0.nonce), ("key_thumbprint", CatalogueWorkshop.thumbprint)] } },
        Entry("other-access-token", .accessTokenHashMismatch, "It was issued with another access token.") {
            try $0.token([("at_hash", "\"77QmUPtjPfzWtF2AnpK9RQ\"")])
        }.with { $0.requestMembers = { [("nonce", $0.nonce), ("access_token", CatalogueWorkshop.accessToken)] } },
        Entry(
            "tracked",
            .trackingNotAllowed,
            "It is of a login with tracking (at_hash), and only Limited Login is allowed."
        ) {
            try $0.token([("at_hash", "\"77QmUPtjPfzWtF2AnpK9RQ\"")])
        }.with { $0.setting = ("tracking", "\"limited\"") },
        Entry("twice", .tokenReplayed, "It comes a second time.", presentations: 2) { try $0.token() }
            .with { $0.setting = ("replay", "\"reject\"") },
    ]
}
