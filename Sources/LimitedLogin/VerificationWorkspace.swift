internal import LLBytes
internal import LLJOSE

/// The buffers of one worker, reused for every token, so that a verdict allocates nothing. It is not Sendable: each worker
/// has its own. It stays below 256 KiB. Its checks are `mutating`, since a call that borrows it copies it.
package struct VerificationWorkspace: ~Copyable {
    var header = JSONObject(limits: VerificationLimits.header)
    var parameters = MemberNodes<HeaderParameter>()
    /// The decoded payload (RFC 7519 section 4, JWT Claims Set), and the positions of its claims in it.
    var claimsSet = JSONObject(limits: VerificationLimits.payload)
    var claims = MemberNodes<ClaimName>()
    var signature: [UInt8] = []
    /// The key ID of the last token, with its escapes decoded. It is empty if the header was not read that far, or if the ID
    /// is so long that no published key can have it.
    package internal(set) var keyID: [UInt8] = []
    var scratch: [UInt8] = []
    /// The nonce of the last accepted token, if the verifier's issuer issued it and the token begins a login.
    package internal(set) var recognizedNonce: RecognizedNonce?

    package init() {}

    /// The decoded JSON payload of the last token; the ranges of its `VerifiedClaims` are positions in it. Keeping it while the
    /// next token is judged costs that token a copy.
    package var payload: [UInt8] { claimsSet.bytes }

    /// Calls `answer` with the value of a payload's string, in place or decoded.
    @inline(__always)
    mutating func withValue<Answer>(_ node: Int, _ answer: (Span<UInt8>, Range<Int>) -> Answer) -> Answer {
        guard claimsSet.document.isEscaped(node) else {
            return answer(claimsSet.bytes.span, claimsSet.document.range(node))
        }
        decodeToScratch(node)
        return answer(scratch.span, scratch.indices)
    }

    mutating func decodeToScratch(_ node: Int) {
        scratch.removeAll(keepingCapacity: true)
        claimsSet.appendString(node, to: &scratch)
    }

    /// The node of `cnf.jkt` (RFC 7800 section 3.1, RFC 9449 section 6.1), if it is a string.
    mutating func keyThumbprint() -> Int? {
        guard let confirmation = claims[.confirmation], let thumbprint = claimsSet.member("jkt", of: confirmation),
            claimsSet.document.isString(thumbprint)
        else { return nil }
        return thumbprint
    }
}

/// The header parameters that a verifier reads (RFC 7515 section 4.1). `jku`, `jwk`, `x5u`, `x5c` and `x5t` are missing: a
/// token must not supply its own key.
enum HeaderParameter: Int, CaseIterable {
    case alg, typ, kid, crit, b64, cty, enc, zip, p2c, p2s

    static let names = allCases.map { JSONName("\($0)") }
}

/// The positions of an object's members on its tape: of a header's parameters, or of a payload's claims.
struct MemberNodes<Name: RawRepresentable<Int>> {
    /// The node of each member's value, in the order of the names; zero, the root's node, for none.
    private var nodes = InlineArray<32, UInt32>(repeating: 0)

    mutating func find(_ names: [JSONName], in object: borrowing JSONObject) {
        nodes = InlineArray(repeating: 0)
        var span = nodes.mutableSpan
        object.findMembers(named: names, nodes: &span)
    }

    @inline(__always)
    subscript(name: Name) -> Int? {
        let node = nodes[name.rawValue]
        return node == 0 ? nil : Int(node)
    }
}

/// The judged facts of an accepted token, as ranges into `VerificationWorkspace.payload` until that judges the next token.
/// The range of a string is the text between its quotes, still escaped.
package struct VerifiedClaims: Sendable {
    package struct Place: Sendable {
        package var id: Range<Int>
        package var name: Range<Int>
    }

    @usableFromInline var texts = InlineArray<24, PayloadRange>(repeating: PayloadRange())

    /// The range of a text claim, between its quotes, or of a list with its brackets; nil if there is no such claim. The
    /// nonce is empty if the login was started without one. The text of `cnf` is its thumbprint `jkt`.
    package subscript(claim: ClaimName) -> Range<Int>? {
        @inlinable @inline(__always) get { texts[claim.rawValue].range }
        @inlinable @inline(__always) set { texts[claim.rawValue].range = newValue }
    }

    // Every accepted token has the next four claims.
    @inlinable package var issuer: Range<Int> { self[.issuer] ?? 0..<0 }
    @inlinable package var audience: Range<Int> { self[.audience] ?? 0..<0 }
    @inlinable package var subject: Range<Int> { self[.subject] ?? 0..<0 }
    @inlinable package var tokenID: Range<Int> { self[.tokenID] ?? 0..<0 }

    package var issuedAt: NumericDate
    package var expiresAt: NumericDate
    package var hasNotBefore = false
    /// True if only the id token was issued, and so the login was a Limited Login: `at_hash` is absent.
    package var isLimited = true

    package var birthday: Birthday?
    package var ageRange: AgeRange?
    package var hometown: Place?
    package var location: Place?

    package func place(_ claim: ClaimName) -> Place? { if case .userHometown = claim { hometown } else { location } }

    /// The permissions with a claim. The two gaming permissions are left out, because their claims are those of
    /// `public_profile`.
    package var permissions: PermissionSet { satisfiedPermissions.subtracting(.gaming) }
    /// The permissions that a caller may rely on: the same, and the gaming permissions with a claim.
    package var satisfiedPermissions: PermissionSet = []

    /// True if the token has `cnf`, readable or not: its holder must prove possession of a key (RFC 7800 section 3).
    package var isBoundToKey = false

    /// The key that the token is bound to. No other place judges `cnf`.
    package var keyBinding: KeyBinding {
        @inline(__always) get {
            guard isBoundToKey else { return .none }
            return self[.confirmation].map { .key(thumbprint: $0) } ?? .unreadable
        }
    }

    package enum KeyBinding {
        /// There is no `cnf`: any holder of the token may use it.
        case none
        case key(thumbprint: Range<Int>)
        /// There is a `cnf` without a text `jkt`, so no key can use the token.
        case unreadable
    }
}

/// A range of a token's payload in four bytes, since claims are passed by value: a token has at most 32 KiB.
package struct PayloadRange: Sendable {
    @usableFromInline var start = UInt16.max
    @usableFromInline var count: UInt16 = 0

    package init() {}

    @inlinable
    package var range: Range<Int>? {
        get { start == .max ? nil : Int(start)..<Int(start) + Int(count) }
        set {
            start = newValue.map { UInt16(truncatingIfNeeded: $0.lowerBound) } ?? .max
            count = newValue.map { UInt16(truncatingIfNeeded: $0.count) } ?? 0
        }
    }
}

/// The buffers and the prepared keys of one verdict of the library's public functions. The next verdict reuses both.
/// Only the verdict that took the session out of its ``TokenVerifier`` touches it; hence `@unchecked Sendable`.
final class VerificationSession: @unchecked Sendable {
    var workspace = VerificationWorkspace()
    private var last: (set: JWKSet, keys: VerificationKeys)?

    /// The prepared keys of a set; those of the latest set are kept if OpenSSL could prepare all.
    func keys(of set: JWKSet) -> VerificationKeys {
        if let last, last.set == set { return last.keys }
        let keys = VerificationKeys(set)
        if keys.isWhole { last = (set, keys) }
        return keys
    }
}
