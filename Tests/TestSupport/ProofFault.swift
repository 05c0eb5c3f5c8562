package import LimitedLogin
import OpenSSL
import StandInIssuer

/// One fault of a proof, under the number of its clause in RFC 9449 section 4.3.
package struct ProofFault: Sendable, CustomStringConvertible {
    package let clause: Int
    package let name: String
    package let rejection: DPoPRejection
    package let bend: @Sendable (inout Proof) throws -> Void

    package var description: String { "(\(clause)) \(name)" }
}

extension ProofFault {
    /// Further ahead than any skew of these tests, in seconds, and still not when the proof is judged a little later.
    private static let ahead: Int64 = 90

    private static func fault(
        _ clause: Int,
        _ name: String,
        _ rejection: DPoPRejection,
        _ bend: @escaping @Sendable (inout Proof) throws -> Void
    ) -> ProofFault {
        ProofFault(clause: clause, name: name, rejection: rejection, bend: bend)
    }

    private static func header(_ clause: Int, _ name: String, _ json: String?, _ rejection: DPoPRejection) -> ProofFault
    {
        fault(clause, "\(name): \(json ?? "left out")", rejection) { $0.set(header: name, json) }
    }

    private static func claim(_ clause: Int, _ name: String, _ json: String?, _ rejection: DPoPRejection) -> ProofFault
    {
        fault(clause, "\(name): \(json ?? "left out")", rejection) { $0.set(name, json) }
    }

    private static func key(
        _ clause: Int,
        _ name: String,
        _ change: @escaping @Sendable (String) -> String
    ) -> ProofFault {
        fault(clause, name, .invalidKey) { proof in proof.set(header: "jwk", change(proof.minter.jsonWebKey)) }
    }

    /// (2) a single well-formed JWT, (3) all required claims.
    private static let shapeFaults: [ProofFault] = [
        fault(2, "a header that is no JSON", .malformed) { $0.headerText = "typ" },
        fault(2, "a header that is a list", .malformed) { $0.headerText = "[]" },
        fault(2, "a payload that is no JSON", .malformed) { $0.payloadText = "htm=GET" },
        fault(2, "a payload of two objects", .malformed) { $0.payloadText = "{}{}" },
        fault(2, "an empty payload", .malformed) { $0.payloadText = "" },
        fault(2, "a claim twice", .malformed) { $0.payload.append(("htm", #""POST""#)) },
        fault(2, "a claim twice, once escaped", .malformed) { $0.payload.append((#"ht\u006d"#, #""POST""#)) },
        fault(2, "a header parameter twice", .malformed) { $0.header.append(("alg", #""none""#)) },
        fault(2, "more than 4 KiB", .tooLong) { $0.set("x", "\"" + String(repeating: "x", count: 4_096) + "\"") },
        claim(3, "jti", nil, .missingTokenID), claim(3, "jti", #""""#, .missingTokenID),
        claim(3, "jti", "5", .missingTokenID), claim(3, "jti", "null", .missingTokenID),
        claim(3, "jti", "\"" + String(repeating: "x", count: 257) + "\"", .missingTokenID),
    ]

    /// (4) `typ`, (5) `alg` and what is not understood.
    private static let headerFaults: [ProofFault] = [
        header(4, "typ", nil, .wrongType), header(4, "typ", #""JWT""#, .wrongType),
        header(4, "typ", #""DPOP+JWT""#, .wrongType), header(4, "typ", #""application/dpop+jwt""#, .wrongType),
        header(4, "typ", #"["dpop+jwt"]"#, .wrongType),
        header(5, "alg", nil, .unsupportedAlgorithm), header(5, "alg", #""none""#, .unsupportedAlgorithm),
        header(5, "alg", #""HS256""#, .unsupportedAlgorithm), header(5, "alg", #""RS256""#, .unsupportedAlgorithm),
        header(5, "alg", #""ES384""#, .unsupportedAlgorithm), header(5, "alg", #""ES256K""#, .unsupportedAlgorithm),
        header(5, "alg", #""es256""#, .unsupportedAlgorithm), header(5, "alg", #"["ES256"]"#, .unsupportedAlgorithm),
        header(5, "crit", #"["b64"]"#, .unsupportedCriticalHeader), header(5, "crit", "[]", .unsupportedCriticalHeader),
        header(5, "b64", "false", .unsupportedCriticalHeader),
    ]

    /// (6) the signature verifies with the key in `jwk`, which (7) is a public one.
    private static let keyFaults: [ProofFault] = [
        header(6, "jwk", nil, .invalidKey), header(6, "jwk", "null", .invalidKey), header(6, "jwk", "{}", .invalidKey),
        key(6, "kty RSA") { $0.replacing(#""EC""#, with: #""RSA""#) },
        key(6, "kty oct") { $0.replacing(#""EC""#, with: #""oct""#) },
        key(6, "crv P-384") { $0.replacing("P-256", with: "P-384") },
        key(6, "crv secp256k1") { $0.replacing("P-256", with: "secp256k1") },
        key(6, "crv left out") { $0.replacing(#""crv":"P-256","#, with: "") },
        key(6, "x left out") { $0.replacing(#""x":"#, with: #""z":"#) },
        key(6, "y as a number") { _ in #"{"kty":"EC","crv":"P-256","x":"AA","y":5}"# },
        key(6, "short coordinates") { _ in #"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"# },
        key(6, "a point off the curve") { _ in
            let zeros = String(repeating: "A", count: 43)
            return #"{"kty":"EC","crv":"P-256","x":"\#(zeros)","y":"\#(zeros)"}"#
        },
        key(6, "coordinates beyond the field") { _ in
            let ones = String(repeating: "_", count: 42) + "8"
            return #"{"kty":"EC","crv":"P-256","x":"\#(ones)","y":"\#(ones)"}"#
        },
        key(6, "for encryption") { $0.dropLast() + #","use":"enc"}"# },
        key(6, "for signing only") { $0.dropLast() + #","key_ops":["sign"]}"# },
        key(6, "for another algorithm") { $0.dropLast() + #","alg":"ES384"}"# },
        fault(6, "signed by another key", .invalidSignature) { $0.minter = Proof.stranger },
        key(7, "with its private half") { $0.dropLast() + #","d":"AA"}"# },
        key(7, "with a symmetric member") { $0.dropLast() + #","k":"AA"}"# },
    ]

    /// (8) `htm`, (9) `htu`.
    private static let requestFaults: [ProofFault] = [
        claim(8, "htm", nil, .wrongMethod), claim(8, "htm", #""POST""#, .wrongMethod),
        claim(8, "htm", #""get""#, .wrongMethod), claim(8, "htm", #""GET ""#, .wrongMethod),
        claim(8, "htm", #""""#, .wrongMethod), claim(8, "htm", #"["GET"]"#, .wrongMethod),
        claim(9, "htu", nil, .wrongURI), claim(9, "htu", "5", .wrongURI), claim(9, "htu", #""""#, .wrongURI),
        claim(9, "htu", #""/login/me""#, .wrongURI), claim(9, "htu", #""api.example.com/login/me""#, .wrongURI),
        claim(9, "htu", #""http://api.example.com/login/me""#, .wrongURI),
        claim(9, "htu", #""https://api.example.com:8443/login/me""#, .wrongURI),
        claim(9, "htu", #""https://api.example.com/login/Me""#, .wrongURI),
        claim(9, "htu", #""https://api.example.com/login/me/""#, .wrongURI),
        claim(9, "htu", #""https://api.example.com/login""#, .wrongURI),
        claim(9, "htu", #""https://api.example.com.evil.test/login/me""#, .wrongURI),
        claim(9, "htu", #""https://api.example.com@evil.test/login/me""#, .wrongURI),
        claim(9, "htu", #""https://me@api.example.com/login/me""#, .wrongURI),
        claim(9, "htu", #""https://api.example.com/login%2Fme""#, .wrongURI),
        claim(9, "htu", #"["https://api.example.com/login/me"]"#, .wrongURI),
    ]

    /// (11) `iat`, (12) `ath` and the key of the token.
    private static let tokenFaults: [ProofFault] = [
        claim(11, "iat", nil, .outOfTime),
        fault(11, "iat: more than 300 s ago", .outOfTime) { $0.set("iat", "\($0.now - 301)") },
        fault(11, "iat: further ahead than the skew", .outOfTime) { $0.set("iat", "\($0.now + ahead)") },
        fault(11, "iat: a string", .outOfTime) { $0.set("iat", "\"\($0.now)\"") },
        claim(11, "iat", "-1", .outOfTime), claim(11, "iat", "1e300", .outOfTime), claim(11, "iat", "0", .outOfTime),
        fault(11, "exp: past", .outOfTime) { $0.set("exp", "\($0.now - 301)") },
        fault(11, "nbf: to come", .outOfTime) { $0.set("nbf", "\($0.now + ahead)") },
        claim(11, "exp", "null", .outOfTime), claim(11, "exp", #""9999999999""#, .outOfTime),
        claim(11, "nbf", #""0""#, .outOfTime), claim(11, "nbf", "-1", .outOfTime),
        claim(12, "ath", nil, .otherToken), claim(12, "ath", #""""#, .otherToken),
        claim(12, "ath", #""fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo""#, .otherToken),
        fault(12, "ath with padding", .otherToken) { $0.set("ath", "\"\(try Proof.hash($0.token))=\"") },
        fault(12, "ath in hexadecimal", .otherToken) {
            $0.set("ath", "\"\(try SHA256.digest(of: Array($0.token.utf8).span).hexadecimal)\"")
        },
        fault(12, "a sound proof of another key", .otherKey) { proof in
            proof.minter = Proof.stranger
            proof.set(header: "jwk", proof.minter.jsonWebKey)
        },
    ]

    /// Every clause that a proof alone can break. (1), one field, is for the caller that sees the fields; (10) is about nonces,
    /// which are not given out.
    package static let table = shapeFaults + headerFaults + keyFaults + requestFaults + tokenFaults
}
