import LLJOSE
import LLStandIn
import LLTestSupport
import LimitedLogin

/// One fault of a proof, with the number of its clause in RFC 9449 section 4.3.
struct ProofFault: Sendable, CustomStringConvertible {
    let clause: Int
    let name: String
    /// The sentence of the refusal.
    let sentence: String
    let bend: @Sendable (inout Proof) throws -> Void

    var description: String { "(\(clause)) \(name)" }
}

extension ProofFault {
    private static func fault(
        _ clause: Int,
        _ name: String,
        _ rejection: Rejection,
        _ bend: @escaping @Sendable (inout Proof) throws -> Void
    ) -> ProofFault {
        ProofFault(clause: clause, name: name, sentence: rejection.detail, bend: bend)
    }

    private static func fault(
        _ clause: Int,
        _ name: String,
        telling sentence: String,
        _ bend: @escaping @Sendable (inout Proof) throws -> Void
    ) -> ProofFault {
        ProofFault(clause: clause, name: name, sentence: sentence, bend: bend)
    }

    private static func claim(_ clause: Int, _ name: String, _ json: String?, telling sentence: String) -> ProofFault {
        fault(clause, "\(name): \(json ?? "left out")", telling: sentence) { $0.set(name, json) }
    }

    /// Another method. `shown` is its text in the refusal; nil if the refusal must not show it.
    private static func method(_ json: String, shown: String?) -> ProofFault {
        let sentence = shown.map { "The DPoP proof's htm is \($0), and the request's method is GET." }
        return claim(8, "htm", json, telling: sentence ?? "The DPoP proof's htm is not the request's method.")
    }

    /// Another URL. The refusal shows it in the form that is compared.
    private static func url(_ url: String, shown: String? = nil) -> ProofFault {
        let sentence = "The DPoP proof's htu is \(shown ?? url), and the request's URL is \(Proof.url)."
        return claim(9, "htu", "\"\(url)\"", telling: sentence)
    }

    private static func noURL(_ url: String) -> ProofFault {
        let sentence = "The DPoP proof's htu is no http or https URL with a host and without a user."
        return claim(9, "htu", "\"\(url)\"", telling: sentence)
    }

    private static let clock = "the device's clock is wrong: correct it by the Date of this answer"
    private static let tooOld = "and at most 300 s are allowed. Make a proof for each request; if you do, \(clock)"

    private static func time(_ name: String, _ json: String, _ fault: String) -> ProofFault {
        claim(11, name, json, telling: "The DPoP proof's \(name) is \(fault).")
    }

    private static func noTime(_ name: String, _ json: String) -> ProofFault {
        time(name, json, "no number of seconds since 1970: write it in seconds and without quotes")
    }

    private static func header(_ clause: Int, _ name: String, _ json: String?, _ rejection: Rejection) -> ProofFault {
        fault(clause, "\(name): \(json ?? "left out")", rejection) { $0.set(header: name, json) }
    }

    private static func claim(_ clause: Int, _ name: String, _ json: String?, _ rejection: Rejection) -> ProofFault {
        fault(clause, "\(name): \(json ?? "left out")", rejection) { $0.set(name, json) }
    }

    private static func key(
        _ clause: Int,
        _ name: String,
        _ change: @escaping @Sendable (String) -> String
    ) -> ProofFault {
        fault(clause, name, .proofOfInvalidKey) { proof in proof.set(header: "jwk", change(proof.minter.jsonWebKey)) }
    }

    /// (2) a single well-formed JWT, (3) all required claims.
    private static let shapeFaults: [ProofFault] = [
        fault(2, "a header that is no JSON", .proofMalformed) { $0.headerText = "typ" },
        fault(2, "a header that is a list", .proofMalformed) { $0.headerText = "[]" },
        fault(2, "a payload that is no JSON", .proofMalformed) { $0.payloadText = "htm=GET" },
        fault(2, "a payload of two objects", .proofMalformed) { $0.payloadText = "{}{}" },
        fault(2, "an empty payload", .proofMalformed) { $0.payloadText = "" },
        fault(2, "a claim twice", .proofMalformed) { $0.payload.append(("htm", #""POST""#)) },
        fault(2, "a claim twice, once escaped", .proofMalformed) { $0.payload.append((#"ht\u006d"#, #""POST""#)) },
        fault(2, "a header parameter twice", .proofMalformed) { $0.header.append(("alg", #""none""#)) },
        fault(2, "more than 4 KiB", .proofTooLong) { $0.set("x", "\"" + String(repeating: "x", count: 4_096) + "\"") },
        claim(3, "jti", nil, .proofWithoutTokenID), claim(3, "jti", #""""#, .proofWithoutTokenID),
        claim(3, "jti", "5", .proofWithoutTokenID), claim(3, "jti", "null", .proofWithoutTokenID),
        claim(3, "jti", "\"" + String(repeating: "x", count: 257) + "\"", .proofWithoutTokenID),
    ]

    /// (4) `typ`, (5) `alg` and critical header parameters that are not supported.
    private static let headerFaults: [ProofFault] = [
        header(4, "typ", nil, .proofOfWrongType), header(4, "typ", #""JWT""#, .proofOfWrongType),
        header(4, "typ", #""DPOP+JWT""#, .proofOfWrongType),
        header(4, "typ", #""application/dpop+jwt""#, .proofOfWrongType),
        header(4, "typ", #"["dpop+jwt"]"#, .proofOfWrongType),
        header(5, "alg", nil, .proofOfUnsupportedAlgorithm), header(5, "alg", #""none""#, .proofOfUnsupportedAlgorithm),
        header(5, "alg", #""HS256""#, .proofOfUnsupportedAlgorithm),
        header(5, "alg", #""RS256""#, .proofOfUnsupportedAlgorithm),
        header(5, "alg", #""ES384""#, .proofOfUnsupportedAlgorithm),
        header(5, "alg", #""ES256K""#, .proofOfUnsupportedAlgorithm),
        header(5, "alg", #""es256""#, .proofOfUnsupportedAlgorithm),
        header(5, "alg", #"["ES256"]"#, .proofOfUnsupportedAlgorithm),
        header(5, "crit", #"["b64"]"#, .proofWithCriticalHeader), header(5, "crit", "[]", .proofWithCriticalHeader),
        header(5, "b64", "false", .proofWithCriticalHeader),
    ]

    /// (6) the signature verifies with the key in `jwk`, which (7) is a public one.
    private static let keyFaults: [ProofFault] = [
        header(6, "jwk", nil, .proofOfInvalidKey), header(6, "jwk", "null", .proofOfInvalidKey),
        header(6, "jwk", "{}", .proofOfInvalidKey),
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
        fault(6, "signed by another key", .proofOfInvalidSignature) { $0.minter = Proof.stranger },
        key(7, "with its private half") { $0.dropLast() + #","d":"AA"}"# },
        key(7, "with a symmetric member") { $0.dropLast() + #","k":"AA"}"# },
    ]

    private static let noMethod = "The DPoP proof has no htm that is a string."
    private static let noTarget = "The DPoP proof has no htu that is a string."

    /// (8) `htm`, (9) `htu`.
    private static let requestFaults: [ProofFault] = [
        claim(8, "htm", nil, telling: noMethod), claim(8, "htm", #"["GET"]"#, telling: noMethod),
        method(#""POST""#, shown: "POST"), method(#""get""#, shown: "get"), method(#""GET ""#, shown: nil),
        method(#""""#, shown: nil), method("\"" + String(repeating: "G", count: 129) + "\"", shown: nil),
        method(#""G\u0007T""#, shown: nil),
        claim(9, "htu", nil, telling: noTarget), claim(9, "htu", "5", telling: noTarget),
        claim(9, "htu", #"["https://api.example.com/login/me"]"#, telling: noTarget),
        noURL(""), noURL("/login/me"), noURL("api.example.com/login/me"), noURL("https://me@api.example.com/login/me"),
        noURL("https://api.example.com@evil.test/login/me"),
        url("http://api.example.com/login/me"), url("https://api.example.com:8443/login/me"),
        url("https://api.example.com/login/Me"), url("https://api.example.com/login/me/"),
        url("https://api.example.com/login"), url("https://api.example.com.evil.test/login/me"),
        url("https://api.example.com/login%2Fme"),
        // The refusal leaves out the query, which does not belong in a log.
        url("https://api.example.com/x?secret=1#y", shown: "https://api.example.com/x"),
        claim(
            9,
            "htu",
            "\"https://api.example.com/" + String(repeating: "x", count: 128) + "\"",
            telling: "The DPoP proof's htu is not the request's URL."
        ),
    ]

    /// (11) `iat`, (12) `ath` and the key of the token.
    private static let tokenFaults: [ProofFault] = [
        claim(11, "iat", nil, .proofWithoutIssueTime),
        time("iat", "\(Login.now - 301)", "301 s behind, \(tooOld)"),
        time("iat", "0", "1700000000 s behind, \(tooOld)"), time("iat", "\(Login.now + 61)", "61 s ahead: \(clock)"),
        time("iat", "\(Login.now + 60).5", "61 s ahead: \(clock)"),
        time("exp", "\(Login.now - 61)", "61 s behind"), time("nbf", "\(Login.now + 61)", "61 s ahead"),
        claim(11, "iat", "\(Login.now)000", .proofNotInSeconds("iat", "milliseconds")),
        claim(11, "iat", "\(Login.now)000000", .proofNotInSeconds("iat", "microseconds")),
        claim(11, "nbf", "\(Login.now)000", .proofNotInSeconds("nbf", "milliseconds")),
        noTime("iat", #""1700000000""#), noTime("iat", "null"), noTime("iat", "-1"), noTime("iat", "1e300"),
        noTime("iat", "\(Login.now)000000000"), noTime("exp", "null"), noTime("exp", #""9999999999""#),
        noTime("exp", "[]"), noTime("nbf", #""0""#), noTime("nbf", "-1"),
        claim(12, "ath", nil, .proofWithoutTokenHash), claim(12, "ath", "5", .proofWithoutTokenHash),
        claim(12, "ath", #""""#, .proofOfOtherToken),
        claim(12, "ath", #""fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo""#, .proofOfOtherToken),
        fault(12, "ath with padding", .proofOfOtherToken) { $0.set("ath", "\"\(try Proof.hash($0.token))=\"") },
        fault(12, "ath in hexadecimal", .proofOfOtherToken) {
            $0.set("ath", "\"\(try SHA256.digest(of: Array($0.token.utf8).span).hexadecimal)\"")
        },
        fault(12, "a sound proof of another key", .proofOfOtherKey) { proof in
            proof.minter = Proof.stranger
            proof.set(header: "jwk", proof.minter.jsonWebKey)
        },
    ]

    /// Every clause that a proof alone can break. The caller checks (1), that there is one field. (10) is about nonces,
    /// which are not issued.
    static let table = shapeFaults + headerFaults + keyFaults + requestFaults + tokenFaults
}
