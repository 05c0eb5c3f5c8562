import LLBytes
import LLJOSE

@testable import LimitedLogin

/// Refuses any unsigned bytes, and accepts a signed payload only with a valid person and time.
func fuzzSignedRequest(_ input: [UInt8]) {
    let fixture = unsafe CapabilityFixture.shared
    func judge(_ bytes: [UInt8]) -> SignedRequest? {
        try? SignedRequest(verifying: bytes.span, secrets: fixture.secrets, clockSkew: .seconds(60), now: fixture.now)
    }
    require(judge(input) == nil, "nothing is accepted that nobody signed")
    let payload = Array(Base64URL.encode(input).utf8)
    let secret = fixture.secret
    guard let code = try? HMACSHA256.authenticationCode(for: payload.span, key: secret.span) else { return }
    if let request = judge(Array(code.base64URL.utf8) + [UInt8(ascii: ".")] + payload) {
        require(request.appID == "2", "the app is the one whose secret signed")
        require(DecimalNumber.isIdentifier(request.userID.utf8), "a person's ID is as Facebook writes it")
        let age = fixture.now.secondsSince1970 - request.issuedAt.secondsSince1970
        require(age <= 86_400 && age >= -60, "a request is of today")
    }
    require(OpenSSLError.isQueueEmpty, "the error queue is empty")
}

/// Takes any answer of Graph about a login; the only nonce that it may yield is the expected one.
func fuzzTokenInfo(_ input: [UInt8]) {
    let fixture = unsafe CapabilityFixture.shared
    guard let inspection = fixture.inspection,
        let token = try? VerifiedAccessToken(me: Array(#"{"id":"218471"}"#.utf8), of: inspection)
    else { return require(false, "the fixture is good") }
    let nonce = try? AccessTokenNonce(accessTokenInfo: input, of: token, expecting: fixture.nonce, now: fixture.now)
    require(nonce == nil || nonce?.value == fixture.nonceText, "the nonce is the one expected")
}

/// Judges a header and a payload, separated by a zero byte: as they are, and signed by the fixture's device.
func fuzzDPoP(_ input: [UInt8]) {
    let fixture = unsafe CapabilityFixture.shared
    let method = fixture.method
    let thumbprint = fixture.thumbprint
    func judge(_ proof: [UInt8]) -> DPoPProof? {
        try? DPoPProof(
            verifying: proof.span,
            method: method.span,
            target: fixture.target,
            token: method.span,
            keyThumbprint: thumbprint.span,
            clockSkew: .seconds(60),
            now: fixture.now
        )
    }
    require(judge(input) == nil, "nothing is accepted that the device did not sign")
    let parts = input.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
    for header in [Array(parts[0]), fixture.header] {
        let text = Array((Base64URL.encode(header) + "." + Base64URL.encode(Array(parts.last ?? []))).utf8)
        guard text.count < DPoPProof.byteLimit, let signature = try? fixture.device.signature(for: text) else {
            continue
        }
        if let proof = judge(text + Array(".\(Base64URL.encode(signature))".utf8)) {
            require(header == fixture.header || proof.keyThumbprint.utf8.count == 43, "the key is the device's")
            require((1...256).contains(proof.tokenID.utf8.count), "a proof has a name")
        }
    }
    if let uri = TargetURI(input.span) {
        require(TargetURI(uri.normalized.span) == uri, "one spelling is its own spelling")
    }
    require(OpenSSLError.isQueueEmpty, "the error queue is empty")
}

/// Judges a header and a payload, separated by a zero byte: as they are, and signed by the issuer's own key.
func fuzzOwnToken(_ input: [UInt8]) {
    let fixture = unsafe OwnTokenFixture.shared
    func judge(_ token: [UInt8], isSigned: Bool = false, appID: [UInt8]? = nil) -> OwnToken? {
        try? fixture.verifier.judge(token.span, appID: appID, isSigned: isSigned, now: fixture.now)
    }
    require(judge(input) == nil, "nothing is accepted that the issuer did not sign")
    _ = fixture.verifier.isOwn(input.span)
    let parts = input.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
    let payload = Array(parts.last ?? [])
    for header in [Array(parts[0]), fixture.header] {
        let text = Array((Base64URL.encode(header) + "." + Base64URL.encode(payload)).utf8)
        guard var signature = try? fixture.key.signature(for: text) else { continue }
        let token = text + Array(".\(Base64URL.encode(signature))".utf8)
        signature[31] ^= 1
        let altered = text + Array(".\(Base64URL.encode(signature))".utf8)
        guard let own = judge(token) else {
            // A remembered signature skips only the cryptography.
            require(judge(token, isSigned: true) == nil, "the memory makes nothing good")
            continue
        }
        require(fixture.verifier.isOwn(token.span), "the verifier knows its own tokens")
        require(own.payload == payload, "the payload is the signed one")
        require(Array(payload[own.claims.issuer]) == fixture.issuer, "the issuer is this one")
        require(Array(payload[own.claims.audience]) == [UInt8(ascii: "b")], "the audience is a configured one")
        require(own.clientID.upperBound <= payload.count && !own.claims.subject.isEmpty, "a token names a person")
        require(fixture.now < own.claims.expiresAt, "a token that has ended is refused")
        require(own.claims.issuedAt.secondsSince1970 <= fixture.now.secondsSince1970 + 60, "a token is of the past")
        let clientID = Array(payload[own.clientID])
        for appID in ["42", "43"] where !appID.utf8.elementsEqual(clientID) {
            require(
                judge(token, appID: Array(appID.utf8)) == nil || clientID.contains(UInt8(ascii: "\\")),
                "it is for one app"
            )
        }
        require(judge(altered) == nil, "the signature counts")
    }
    require(OpenSSLError.isQueueEmpty, "the error queue is empty")
}

/// Judges two answers of Graph, separated by a zero byte.
func fuzzAccessToken(_ input: [UInt8]) {
    let fixture = unsafe CapabilityFixture.shared
    _ = AccessTokenInspection.shape(input.span)
    let parts = input.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false).map { Array($0) }
    let read = try? AccessTokenInspection(debugToken: parts[0], appIDs: ["111"], now: fixture.now)
    guard let inspection = read ?? fixture.inspection else { return }
    require(inspection.appID == "111", "a token of another app is never accepted")
    require(inspection.userID.utf8.allSatisfy { ASCII.digit($0) != nil }, "a person's ID is digits")
    require(inspection.expiresAt.map { fixture.now < $0 } ?? true, "an expired token is never accepted")
    guard let verified = try? VerifiedAccessToken(me: parts.last ?? [], of: inspection) else { return }
    require(verified.profile.userID == inspection.userID, "the person is the token's")
    require(!verified.profile.isLimited, "an access token is no Limited Login's")
    require(
        verified.profile.email == nil || inspection.permissions.contains("email"),
        "what was not granted is not told"
    )
}

/// The state that all inputs of a run share.
final class OwnTokenFixture {
    nonisolated(unsafe) static let shared = OwnTokenFixture()

    let issuer = Array("https://a.example".utf8)
    let key: SigningKey
    let header: [UInt8]
    let verifier: OwnTokenVerifier
    let now: NumericDate

    private init() {
        do {
            key = try SigningKey(generating: .es256)
            header = Array(#"{"alg":"ES256","typ":"at+jwt","kid":"\#(key.keyID)"}"#.utf8)
            let policy = try TokenIssuerPolicy(issuer: "https://a.example", audiences: ["b"])
            verifier = OwnTokenVerifier(
                TokenIssuer(policy: policy, keys: try SigningKeySet([key])),
                verification: try VerificationPolicy(appIDs: ["42", "43"])
            )
            guard let now = NumericDate(secondsSince1970: 1_700_000_000 as Int64) else {
                fatalError("the fixture is broken")
            }
            self.now = now
        } catch {
            fatalError("\(error)")
        }
    }
}

/// The state that the targets of the other capabilities share.
final class CapabilityFixture {
    nonisolated(unsafe) static let shared = CapabilityFixture()

    let secret = Array("0123456789abcdef0123456789abcdef".utf8)
    let secrets = [(appID: "1", secret: "another"), (appID: "2", secret: "0123456789abcdef0123456789abcdef")]
    let method = Array("GET".utf8)
    let nonceText = "n0NceOfThisGame42"
    let nonce: NonceExpectation
    let now: NumericDate
    let target: TargetURI
    let device: PrivateKey
    let header: [UInt8]
    let thumbprint: [UInt8]
    let inspection: AccessTokenInspection?

    private init() {
        do {
            device = try PrivateKey(.p256)
            thumbprint = Array(try device.numbers.thumbprint().utf8)
            let jwk = device.numbers.members.map { #""\#($0.name)":"\#($0.value)""# }.joined(separator: ",")
            header = Array(#"{"typ":"dpop+jwt","alg":"ES256","jwk":{\#(jwk)}}"#.utf8)
            guard let now = NumericDate(secondsSince1970: 1_700_000_000 as Int64),
                let target = TargetURI(Array("https://a.example/x".utf8).span)
            else { fatalError("the fixture is broken") }
            guard let nonce = Nonce(nonceText) else { fatalError("the fixture is broken") }
            self.nonce = .nonce(nonce)
            self.now = now
            self.target = target
            let answer = #"""
                {"data":{"app_id":"111","type":"USER","expires_at":0,"is_valid":true,"user_id":"218471","scopes":\#
                ["public_profile","user_friends","user_birthday","user_age_range","user_hometown","user_link"]}}
                """#
            inspection = try AccessTokenInspection(debugToken: Array(answer.utf8), appIDs: ["111"], now: now)
        } catch {
            fatalError("\(error)")
        }
    }
}
