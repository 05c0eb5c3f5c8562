internal import LLBytes
internal import LLJOSE

/// The player of an Instant Game with a good signature. `FBInstant.player.getSignedPlayerInfoAsync(nonce)` or
/// `getSignedASIDAsync` gives the text to the game.
///
/// It has the form of a ``SignedRequest`` and is signed under the same secret. It has no expiry of its own, so a copy
/// would be valid for ever. Therefore it may be at most one hour old, and its `request_payload` must be the nonce that
/// you gave to this game's session (Meta, "Instant Games SDK v8.0").
public struct SignedPlayerInfo: Equatable, Codable, Sendable {
    /// The app with the secret that signed it.
    public let appID: String
    /// `player_id`: the player within the game; nil if there is an ``appScopedID``. It is not the `sub` of a token.
    public let playerID: String?
    /// `asid`: the person's id of Facebook Login, the same as the `sub` of a token for this app; nil if there is a
    /// ``playerID``.
    public let appScopedID: String?
    /// `issued_at`: the time at which Facebook made it.
    public let issuedAt: NumericDate
    /// `request_payload`, if it was compared.
    public let nonce: String?
    /// The facts of an issued nonce; nil for any other nonce.
    package let issuedNonce: RecognizedNonce?

    private enum CodingKeys: String, CodingKey {
        case appID = "app_id"
        case playerID = "player_id"
        case appScopedID = "asid"
        case issuedAt = "issued_at"
        case nonce
    }

    /// Makes a player from these values, for tests of code that takes one.
    public init(
        appID: String,
        playerID: String? = nil,
        appScopedID: String? = nil,
        issuedAt: NumericDate,
        nonce: String? = nil
    ) {
        (self.appID, self.playerID, self.appScopedID) = (appID, playerID, appScopedID)
        (self.issuedAt, self.nonce, issuedNonce) = (issuedAt, nonce, nil)
    }

    /// Reads the output of `encode(to:)`. **It proves nothing**: decode stored values of your own server, never a request.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            appID: try members.decode(String.self, forKey: .appID),
            playerID: try members.decodeIfPresent(String.self, forKey: .playerID),
            appScopedID: try members.decodeIfPresent(String.self, forKey: .appScopedID),
            issuedAt: try members.decode(NumericDate.self, forKey: .issuedAt),
            nonce: try members.decodeIfPresent(String.self, forKey: .nonce)
        )
    }

    /// The greatest age, in seconds: one hour, the lifetime of an id token.
    package static let greatestAgeSeconds = 3_600

    /// Verifies signed player info.
    /// - Parameters:
    ///   - text: The result of `getSignature()` in the game.
    ///   - secrets: Each app's ID and secret. All of them are tried, so that the time does not reveal which one signed.
    ///   - expectation: The nonce that the game gave Facebook. With nil, any copy is accepted for an hour, from any
    ///     caller.
    ///   - clockSkewSeconds: The time by which `issued_at` may be ahead; less than 0 counts as 0, more than 300 as 300.
    ///   - now: The time for which to judge.
    /// - Throws: The one reason for the refusal. ``SignedPlayerInfoRejection/cannotVerify`` is not a refusal.
    public init(
        verifying text: String,
        secrets: [(appID: String, secret: String)],
        expecting expectation: NonceExpectation?,
        clockSkewSeconds: Int = 60,
        now: NumericDate
    ) throws(SignedPlayerInfoRejection) {
        let bytes = Array(text.utf8)
        try self.init(
            verifying: bytes.span,
            secrets: secrets,
            expecting: expectation,
            clockSkewSeconds: clockSkewSeconds,
            now: now
        )
    }

    /// Does the same for bytes.
    package init(
        verifying bytes: Span<UInt8>,
        secrets: [(appID: String, secret: String)],
        expecting expectation: NonceExpectation?,
        clockSkewSeconds: Int,
        now: NumericDate
    ) throws(SignedPlayerInfoRejection) {
        let envelope: SignedEnvelope
        do throws(SignedRequestRejection) {
            envelope = try SignedEnvelope(verifying: bytes, secrets: secrets)
        } catch {
            throw SignedPlayerInfoRejection(error)
        }
        appID = envelope.appID
        let content = envelope.content
        for name in Self.membersOfOthers where content.member(name) != nil { throw .otherKind }
        let (player, person) = (content.member("player_id"), content.member("asid"))
        guard (player == nil) != (person == nil) else { throw player == nil ? .otherKind : .invalidPlayer }
        // The id must be text: JavaScript, the game's language, would round a number of 17 digits.
        playerID = content.string("player_id").flatMap { DecimalNumber.isIdentifier($0.utf8) ? $0 : nil }
        appScopedID = content.string("asid").flatMap { DecimalNumber.isIdentifier($0.utf8) ? $0 : nil }
        guard playerID != nil || appScopedID != nil else { throw .invalidPlayer }
        guard let issuedAt = content.date("issued_at"),
            issuedAt.isRecent(within: Self.greatestAgeSeconds, clockSkewSeconds: clockSkewSeconds, now: now),
            SignedRequest.isInForce(content, clockSkewSeconds, now)
        else { throw .outOfTime }
        self.issuedAt = issuedAt
        guard let expectation else {
            (nonce, issuedNonce) = (nil, nil)
            return
        }
        nonce = content.string("request_payload")
        do throws(NonceFault) {
            issuedNonce = try expectation.check(nonce, appID: appID, now: now)
        } catch {
            throw SignedPlayerInfoRejection(error)
        }
    }

    /// Members at the top level that signed player info never has: those of a login, a page tab and a callback.
    private static let membersOfOthers: [StaticString] = ["code", "oauth_token", "access_token", "page", "user_id"]
}

/// The reason why signed player info was refused or cannot be judged. No part of the info is in it.
public struct SignedPlayerInfoRejection: Error, Equatable, Sendable, CustomStringConvertible {
    /// The stable codes of a refusal. Later versions may know more of them.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code, as logs contain it.
        public let rawValue: String

        fileprivate init(_ rawValue: String) { self.rawValue = rawValue }

        /// The info is not from Facebook, is not for an Instant Game or is too old.
        public static let invalid = Self("invalid_signed_player_info")
        /// The nonce is not that of this session.
        public static let nonceMismatch = Self(TokenRejection.Code.nonceMismatch.rawValue)
        /// The nonce was not issued here for this app.
        public static let nonceNotIssued = Self(TokenRejection.Code.nonceNotIssued.rawValue)
        /// The nonce was issued too long ago.
        public static let nonceExpired = Self(TokenRejection.Code.nonceExpired.rawValue)
        /// This is no refusal: OpenSSL failed.
        public static let cannotVerify = Self("cannot_verify")
        /// The same as `rawValue`.
        public var description: String { rawValue }
    }

    /// The stable code.
    public let code: Code
    /// One sentence that a person can act on.
    public let description: String

    /// OpenSSL failed; nothing is known about the signature.
    public static let cannotVerify = Self(.cannotVerify, "The signature cannot be verified now.")

    package static let malformed = Self("The signed player info is not two parts of base64url with a JSON object.")
    package static let invalidSignature = Self(
        "The signature was made with no configured app secret, or with another app's than the one named."
    )
    package static let unsupportedAlgorithm = Self("The algorithm is not HMAC-SHA256.")
    package static let otherKind = Self(
        "This is a signed request of another kind: it has no player_id and no asid, or members of a login or a callback."
    )
    package static let invalidPlayer = Self(
        "The member player_id, or asid, is not 1 to 20 digits as text, or both are there."
    )
    package static let outOfTime = Self(
        "The member issued_at is missing, over an hour ago or in the future, or expires is past: have the game ask anew."
    )

    private init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }

    private init(_ description: String) { self.init(.invalid, description) }

    fileprivate init(_ fault: NonceFault) {
        self.init(Code(fault.code.rawValue), fault.sentence("The signed player info"))
    }

    fileprivate init(_ rejection: SignedRequestRejection) {
        switch rejection.code {
        case .cannotVerify: self = .cannotVerify
        case .invalidSignature: self = .invalidSignature
        case .unsupportedAlgorithm: self = .unsupportedAlgorithm
        default: self = .malformed
        }
    }
}
