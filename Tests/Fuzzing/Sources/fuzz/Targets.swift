import LLBytes
import LLJOSE

@testable import LimitedLogin

/// Reads or refuses any bytes; every accessor must work on a document that was read.
func fuzzJSON(_ input: [UInt8]) {
    var document = JSONDocument()
    do throws(JSONError) {
        try document.parse(input)
    } catch {
        require(document.count == 0, "a refused text leaves no nodes")
        return
    }
    require(document.next(document.root) == document.count, "the root holds every node")
    for node in 0..<document.count {
        let range = document.range(node)
        require(range.upperBound <= input.count, "a node lies inside its text")
        require(document.next(node) > node && document.next(node) <= document.count, "the tape runs forward")
        switch document.kind(node) {
        case .string, .name:
            let value = document.string(node, in: input.span)
            var copy: [UInt8] = []
            document.appendString(node, in: input.span, to: &copy)
            require(Array(value.utf8) == copy, "a string's value is UTF-8")
        case .number:
            require(document.double(node, in: input.span)?.isFinite == true, "a number is finite")
            _ = document.integer(node, in: input.span)
        case .object:
            _ = document.member("iss", of: node, in: input.span)
            require(document.children(of: node).count <= 256, "an object keeps its limit")
        case .array: _ = document.children(of: node)
        case .null, .true, .false: break
        }
    }
}

/// Decodes any bytes; the decoded bytes must encode to the very same text.
func fuzzBase64URL(_ input: [UInt8]) {
    var buffer: [UInt8] = []
    if Base64URL.decode(input.span, 0..<input.count, into: &buffer) {
        require(Array(Base64URL.encode(buffer).utf8) == input, "one spelling for each value")
    } else {
        require(buffer.isEmpty, "refused text leaves nothing")
    }
    let text = Array(Base64URL.encode(input).utf8)
    require(Base64URL.decode(text.span, 0..<text.count, into: &buffer) && buffer == input, "every value comes back")
}

/// Splits any bytes as a JWS; the parts must join to the whole.
func fuzzJWS(_ input: [UInt8]) {
    guard let jws = JWSCompactSerialization(splitting: input.span) else { return }
    let dot = [UInt8(ascii: ".")]
    require(
        Array(input[jws.header]) + dot + Array(input[jws.payload]) + dot + Array(input[jws.signature]) == input,
        "the parts join to the whole"
    )
    require(!jws.header.isEmpty && !jws.signature.isEmpty, "header and signature are not empty")
}

/// Reads any bytes as a JWK Set; every accepted key must be usable and obey the limits.
func fuzzJWKSet(_ input: [UInt8]) {
    guard let set = try? JWKSet(parsing: input.span) else { return }
    require(set.keys.count + set.ignoredKeys.count <= 64, "a set keeps its limit")
    for key in set.keys {
        require((2048...8192).contains(key.modulusBitCount), "a modulus keeps its limits")
        require(key.modulus.last.map { $0 & 1 == 1 } == true, "a modulus is odd")
        require(!key.keyID.isEmpty, "a key has a name")
        require(key.thumbprint.utf8.count == 43, "a key has a thumbprint")
    }
    require(VerificationKeys(set).count == set.keys.count, "every usable key can be made ready")
    require(OpenSSLError.isQueueEmpty, "the error queue is empty")
}

/// Judges whole tokens, given as text or as a header, a payload and a signature separated by zero bytes. The fuzzer
/// does not have the private half of the key, so no input may ever be accepted.
func fuzzToken(_ input: [UInt8]) {
    let token = makeToken(input)
    let fixture = unsafe TokenFixture.shared
    do throws(Rejection) {
        _ = try fixture.verifier.judge(
            token.span,
            TokenExpectation(TokenBinding(nonce: Array("nonce".utf8))),
            keys: fixture.keys,
            now: fixture.now,
            workspace: &fixture.workspace
        )
        require(false, "no token is accepted that nobody signed")
    } catch {
        require(!error.detail.isEmpty, "every refusal says why")
        require(error.check.map { $0 <= .signature } == true, "without a signature nothing of the claims is judged")
    }
    require(OpenSSLError.isQueueEmpty, "the error queue is empty")
    fuzzClaims(input, fixture)
}

/// The token of an input: the text behind a leading zero byte, else the encoded parts.
private func makeToken(_ input: [UInt8]) -> [UInt8] {
    if input.first == 0 { return Array(input.dropFirst()) }
    let parts = input.split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false)
    return Array(parts.map { Base64URL.encode($0) }.joined(separator: ".").utf8)
}

/// Judges the claims alone, which no whole token reaches without a good signature.
private func fuzzClaims(_ payload: [UInt8], _ fixture: TokenFixture) {
    fixture.claimsWorkspace.claimsSet.bytes = payload
    let expectation = TokenExpectation(TokenBinding(nonce: Array("nonce".utf8)))
    do throws(Rejection) {
        let claims = try fixture.verifier.judgeClaims(expectation, fixture.now, &fixture.claimsWorkspace)
        require(claims.subject.upperBound <= payload.count, "a claim lies inside the payload")
        let token = VerifiedToken("", claims, fixture.claimsWorkspace)
        require(!token.profile.userID.isEmpty, "a person has an ID")
        require(token.authenticationToken.audience == TokenFixture.appID, "an accepted token is for the app")
        require(token.authenticationToken.nonce == "nonce", "an accepted token has the nonce")
    } catch {
        require(!error.detail.isEmpty, "every refusal says why")
        require(error.check.map { $0 > .signature } == true, "the signature is not judged again")
    }
    fuzzRefresh(fixture)
}

/// Judges the same claims as a refreshed token's. An accepted token names the expected person, device and access token.
private func fuzzRefresh(_ fixture: TokenFixture) {
    let expectation = TokenExpectation(
        binding: TokenBinding(nonce: Array("nonce".utf8), subject: Array("7".utf8)),
        keyThumbprint: "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I",
        accessToken: "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y"
    )
    do throws(Rejection) {
        let claims = try fixture.verifier.judgeClaims(expectation, fixture.now, &fixture.claimsWorkspace)
        let token = VerifiedToken("", claims, fixture.claimsWorkspace)
        require(token.profile.userID == "7", "a refreshed token is the session's person's")
        require(token.authenticationToken.keyThumbprint == expectation.keyThumbprint, "and its device's")
        require(!token.profile.isLimited, "and came with an access token")
    } catch {
        require(!error.detail.isEmpty, "every refusal says why")
    }
}

/// The state that all inputs of a run share.
final class TokenFixture {
    static let appID = "1234567890123456"
    nonisolated(unsafe) static let shared = TokenFixture()

    let verifier: TokenVerifier
    let keys: VerificationKeys
    let now: NumericDate
    var workspace = VerificationWorkspace()
    var claimsWorkspace = VerificationWorkspace()

    private init() {
        do {
            // The public key of RFC 7515 appendix A.2 under the key ID `k`.
            let keySet = try JWKSet(
                parsing: """
                    {"keys":[{"kty":"RSA","kid":"k","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26m\
                    PddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_\
                    7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9\
                    kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"}]}
                    """
            )
            keys = VerificationKeys(keySet)
            verifier = TokenVerifier(policy: try VerificationPolicy(appIDs: [TokenFixture.appID]))
            claimsWorkspace.header.bytes = Array("{\"alg\":\"RS256\",\"kid\":\"k\"}".utf8)
            require(try claimsWorkspace.header.read(), "the header is an object")
            try claimsWorkspace.readKeyID()
            guard let now = NumericDate(secondsSince1970: 1_700_000_000 as Int64) else {
                fatalError("the fixture is broken")
            }
            self.now = now
            require(!keys.isEmpty, "the fixture has its key")
        } catch {
            fatalError("\(error)")
        }
    }
}
