internal import LLCrypto
internal import LLJOSE

/// The buffers of one worker: reused for every token, so that a verdict allocates nothing. What one verdict writes, the
/// next one writes over. Not Sendable: each worker has its own.
///
/// It grows to the sizes real tokens need and stays below 256 KiB.
package struct VerificationWorkspace: ~Copyable {
    /// The decoded header, and where its parameters stand in it.
    var header = JSONObject(limits: VerificationLimits.header)
    var parameters = JOSEHeader()
    /// The decoded payload (RFC 7519 section 4, JWT Claims Set), and where its claims stand in it.
    var claimsSet = JSONObject(limits: VerificationLimits.payload)
    var claims = PayloadClaims()
    var signature: [UInt8] = []
    /// The key ID of the token judged last, escapes decoded. Empty when its header was not read that far, and
    /// when the ID is so long that no published key could have it, so that a refetch would be in vain.
    package internal(set) var keyID: [UInt8] = []
    /// Room for the value of one string.
    var scratch: [UInt8] = []
    /// The nonce of the token accepted last, where the binding was ``BindingKind/issuedNonce``
    /// and the token begins a login; else nil.
    package internal(set) var recognizedNonce: RecognizedNonce?
    /// Nil only if OpenSSL has no SHA-256 or no memory; then nothing can be verified.
    let sha256 = try? SHA256()

    package init() {}

    /// The decoded JSON payload of the token judged last: what the ranges of its `VerifiedClaims` point into.
    ///
    /// This array and `keyID` are the workspace's own: reading them is free, but to hold one while the next
    /// token is judged costs that token a copy.
    package var payload: [UInt8] { claimsSet.bytes }

    /// Asks about the value of a payload's string, where it stands or decoded.
    @inline(__always)
    mutating func withValue<Answer>(_ node: Int, _ answer: (Span<UInt8>, Range<Int>) -> Answer) -> Answer {
        guard claimsSet.document.isEscaped(node) else {
            return answer(claimsSet.bytes.span, claimsSet.document.range(node))
        }
        decodeToScratch(node)
        return answer(scratch.span, scratch.indices)
    }

    /// Puts the value of a payload's string into `scratch`.
    mutating func decodeToScratch(_ node: Int) {
        scratch.removeAll(keepingCapacity: true)
        claimsSet.appendString(node, to: &scratch)
    }

    /// The node of `cnf.jkt` (RFC 7800 section 3.1, RFC 9449 section 6.1), where it is a string.
    var keyThumbprint: Int? {
        guard let confirmation = claims[.confirmation], let thumbprint = claimsSet.member("jkt", of: confirmation),
            claimsSet.document.isString(thumbprint)
        else { return nil }
        return thumbprint
    }
}

/// The claims this library reads; every other claim of a token is passed through untouched.
package enum ClaimName: Int, CaseIterable, Sendable {
    case issuer, audience, subject, issuedAt, expiration, notBefore, tokenID, nonce
    case authorizedParty, accessTokenHash, confirmation
    case name, givenName, middleName, familyName, email, picture
    case userFriends, userBirthday, userAgeRange, userHometown, userLocation, userGender, userLink

    /// What each is called in a token, in the same order.
    fileprivate static let spellings = [
        "iss", "aud", "sub", "iat", "exp", "nbf", "jti", "nonce",
        "azp", "at_hash", "cnf",
        "name", "given_name", "middle_name", "family_name", "email", "picture",
        "user_friends", "user_birthday", "user_age_range", "user_hometown", "user_location", "user_gender", "user_link",
    ]

    /// What the claim is called in a token.
    package var spelling: String { Self.spellings[rawValue] }
}

/// Where the claims this library reads stand on the payload's tape.
struct PayloadClaims {
    private static let names = JSONNameTable(ClaimName.spellings)

    /// For each claim, in the order of `ClaimName`, the node of its value. Zero, which is the root's, for none.
    private var nodes = InlineArray<24, UInt32>(repeating: 0)

    init() {}

    /// Sorts the members of a payload in one pass.
    init(_ claimsSet: borrowing JSONObject) {
        var span = nodes.mutableSpan
        claimsSet.findMembers(named: Self.names, nodes: &span)
    }

    /// The node of a claim's value; nil for a claim that is not there.
    @inline(__always)
    subscript(claim: ClaimName) -> Int? {
        let node = nodes[claim.rawValue]
        return node == 0 ? nil : Int(node)
    }
}

/// The judged facts of an accepted token, as ranges into `VerificationWorkspace.payload`.
///
/// Valid until the workspace judges the next token. The range of a string is the text between its quotes, JSON
/// still escaped, so that it may be copied into another JSON string byte for byte.
package struct VerifiedClaims {
    /// A place with both its ID and its name, each a string's range.
    package struct Place {
        package var id: Range<Int>
        package var name: Range<Int>
    }

    package enum Text: Int, CaseIterable, Sendable {
        case issuer, audience, subject, tokenID, nonce, keyThumbprint
        case name, firstName, middleName, lastName, email, imageURL
    }

    @usableFromInline var texts = InlineArray<12, PayloadRange>(repeating: PayloadRange())

    /// The place of a claim that is text, between its quotes; nil where there is no such claim. The nonce is empty where
    /// the login was started without one.
    package subscript(text: Text) -> Range<Int>? {
        @inlinable @inline(__always) get { texts[text.rawValue].wrappedValue }
        @inlinable @inline(__always) set { texts[text.rawValue].wrappedValue = newValue }
    }

    // Every accepted token has these four.
    @inlinable package var issuer: Range<Int> { self[.issuer] ?? 0..<0 }
    @inlinable package var audience: Range<Int> { self[.audience] ?? 0..<0 }
    @inlinable package var subject: Range<Int> { self[.subject] ?? 0..<0 }
    @inlinable package var tokenID: Range<Int> { self[.tokenID] ?? 0..<0 }

    package var issuedAt: NumericDate
    package var expiresAt: NumericDate
    package var hasNotBefore = false
    /// Whether only the id token was issued, and so the login was a Limited Login: `at_hash` is not there.
    package var isLimited = true

    @PayloadRange package var linkURL: Range<Int>?
    @PayloadRange package var gender: Range<Int>?
    /// The JSON array of the friends' IDs, brackets and all, each element a string: may be copied as it stands.
    @PayloadRange package var friendIDs: Range<Int>?
    package var birthday: Birthday?
    package var ageRange: AgeRange?
    package var hometown: Place?
    package var location: Place?

    /// The permissions for `Profile.permissions`: those whose claims are there. The two gaming permissions are
    /// left out, for their claims are those of `public_profile`.
    package var permissions: PermissionSet { satisfiedPermissions.subtracting(.gaming) }
    /// The permissions a caller may rely on: the same, and the gaming permissions whose claims are there.
    package var satisfiedPermissions: PermissionSet = []

    /// Whether the token has `cnf`, readable or not: its holder must prove to have a key (RFC 7800 section 3).
    package var isBoundToKey = false
}

/// A range of a token's payload in four bytes, since claims are handed on by value: a token has at most 32 KiB.
@propertyWrapper
package struct PayloadRange {
    @usableFromInline var start = UInt16.max
    @usableFromInline var count: UInt16 = 0

    package init() {}

    @inlinable
    package var wrappedValue: Range<Int>? {
        get { start == .max ? nil : Int(start)..<Int(start) + Int(count) }
        set {
            start = newValue.map { UInt16(truncatingIfNeeded: $0.lowerBound) } ?? .max
            count = newValue.map { UInt16(truncatingIfNeeded: $0.count) } ?? 0
        }
    }
}
