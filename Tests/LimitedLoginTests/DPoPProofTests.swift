import Bytes
import LimitedLogin
import OpenSSL
import TestSupport
import Testing

/// A DPoP proof to be bent by each test.
struct Proof {
    static let key = try? P256PrivateKey.generate()
    static let stranger = try? P256PrivateKey.generate()
    static let token = "eyJ.the.token"
    static let url = "https://api.example.com/login/me"

    /// The header's members as JSON; nil leaves one out.
    var header: [(String, String?)]
    /// The payload's members as JSON; nil leaves one out.
    var payload: [(String, String?)]
    /// The key that signs.
    var key: P256PrivateKey
    /// The header and payload as they are written, where that is not the JSON of their members.
    var headerText: String?
    var payloadText: String?

    init() throws {
        key = try #require(Self.key)
        header = [("typ", #""dpop+jwt""#), ("alg", #""ES256""#), ("jwk", Self.jwk(key))]
        payload = [
            ("htm", #""GET""#), ("htu", #""https://api.example.com/login/me""#), ("iat", "\(Login.now - 5)"),
            ("jti", #""e1j3V_bKic8-LAEB""#), ("ath", "\"\(try Self.hash(Self.token))\""),
        ]
    }

    static func hash(_ token: String) throws -> String {
        String(decoding: try SHA256.digest(of: Array(token.utf8).span).base64URL, as: UTF8.self)
    }

    static func jwk(_ key: P256PrivateKey, adding members: String = "") -> String {
        let (x, y) = key.coordinates
        func text(_ bytes: [UInt8]) -> String { String(decoding: Base64URL.encode(bytes), as: UTF8.self) }
        return #"{"kty":"EC","crv":"P-256","x":"\#(text(x))","y":"\#(text(y))"\#(members)}"#
    }

    /// The RFC 7638 thumbprint of a key.
    static func thumbprint(_ key: P256PrivateKey?) throws -> String {
        let (x, y) = try #require(key).coordinates
        func text(_ bytes: [UInt8]) -> String { String(decoding: Base64URL.encode(bytes), as: UTF8.self) }
        return try hash(#"{"crv":"P-256","kty":"EC","x":"\#(text(x))","y":"\#(text(y))"}"#)
    }

    mutating func set(header name: String, _ json: String?) {
        header.removeAll { $0.0 == name }
        header.append((name, json))
    }

    mutating func set(_ name: String, _ json: String?) {
        payload.removeAll { $0.0 == name }
        payload.append((name, json))
    }

    private static func json(_ members: [(String, String?)]) -> String {
        let present = members.compactMap { name, json in json.map { "\"\(name)\":\($0)" } }
        return "{" + present.joined(separator: ",") + "}"
    }

    /// What is signed.
    var signingInput: String {
        [headerText ?? Self.json(header), payloadText ?? Self.json(payload)]
            .map { String(decoding: Base64URL.encode(Array($0.utf8)), as: UTF8.self) }.joined(separator: ".")
    }

    func make() throws -> String {
        let signature = try key.signature(for: Array(signingInput.utf8))
        return signingInput + "." + String(decoding: Base64URL.encode(signature), as: UTF8.self)
    }
}

@Suite("A DPoP proof (RFC 9449)")
struct DPoPProofTests {
    private static func verify(
        _ proof: String,
        method: String = "GET",
        url: String = Proof.url,
        token: String = Proof.token,
        thumbprint: String? = nil,
        at now: NumericDate = Login.sharedNow
    ) throws -> DPoPProof {
        try DPoPProof(
            verifying: proof,
            method: method,
            url: url,
            token: token,
            keyThumbprint: thumbprint ?? Proof.thumbprint(Proof.key),
            now: now
        )
    }

    private static func rejection(_ verdict: () throws -> DPoPProof) -> DPoPRejection? {
        do {
            _ = try verdict()
            return nil
        } catch {
            return error as? DPoPRejection
        }
    }

    @Test("A proof of the token's own device is accepted, and tells its name and moment")
    func accepted() throws {
        let proof = try Self.verify(Proof().make())
        #expect(proof.tokenID == "e1j3V_bKic8-LAEB" && proof.issuedAt.secondsSince1970 == Double(Login.now - 5))
        #expect(try proof.keyThumbprint == Proof.thumbprint(Proof.key) && proof.keyThumbprint.utf8.count == 43)
    }

    /// The proof of RFC 9449 section 7.1, made by somebody else.
    private static let published = [
        "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJo",
        "RjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.",
        "eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRy",
        "ZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.",
        "2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA",
    ].joined()

    @Test("The proof published in RFC 9449 section 7.1 is accepted for its token, URL and key alone")
    func publishedProof() throws {
        let token = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"
        let url = "https://resource.example.org/protectedresource"
        let thumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
        let now = try #require(NumericDate(secondsSince1970: 1_562_262_620 as Int64))
        func rejection(_ token: String, _ url: String, _ thumbprint: String) -> DPoPRejection? {
            Self.rejection {
                try Self.verify(Self.published, url: url, token: token, thumbprint: thumbprint, at: now)
            }
        }
        #expect(rejection(token, url, thumbprint) == nil)
        #expect(rejection(token + "x", url, thumbprint) == .otherToken)
        #expect(rejection(token, url + "s", thumbprint) == .wrongURI)
        #expect(try rejection(token, url, Proof.thumbprint(Proof.key)) == .otherKey)
    }

    /// One fault, under the number of its clause in RFC 9449 section 4.3.
    struct Fault: Sendable, CustomTestStringConvertible {
        let clause: Int
        let name: String
        let rejection: DPoPRejection
        let bend: @Sendable (inout Proof) throws -> Void

        var testDescription: String { "(\(clause)) \(name)" }
    }

    private static func fault(
        _ clause: Int,
        _ name: String,
        _ rejection: DPoPRejection,
        _ bend: @escaping @Sendable (inout Proof) throws -> Void
    ) -> Fault {
        Fault(clause: clause, name: name, rejection: rejection, bend: bend)
    }

    private static func header(_ clause: Int, _ name: String, _ json: String?, _ rejection: DPoPRejection) -> Fault {
        fault(clause, "\(name): \(json ?? "left out")", rejection) { $0.set(header: name, json) }
    }

    private static func claim(_ clause: Int, _ name: String, _ json: String?, _ rejection: DPoPRejection) -> Fault {
        fault(clause, "\(name): \(json ?? "left out")", rejection) { $0.set(name, json) }
    }

    private static func key(
        _ clause: Int,
        _ name: String,
        _ change: @escaping @Sendable (String) -> String
    ) -> Fault {
        fault(clause, name, .invalidKey) { proof in proof.set(header: "jwk", change(Proof.jwk(proof.key))) }
    }

    /// (2) a single well-formed JWT, (3) all required claims.
    private static let shapeFaults: [Fault] = [
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
    private static let headerFaults: [Fault] = [
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
    private static let keyFaults: [Fault] = [
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
        fault(6, "signed by another key", .invalidSignature) { $0.key = try #require(Proof.stranger) },
        key(7, "with its private half") { $0.dropLast() + #","d":"AA"}"# },
        key(7, "with a symmetric member") { $0.dropLast() + #","k":"AA"}"# },
    ]

    /// (8) `htm`, (9) `htu`.
    private static let requestFaults: [Fault] = [
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
    private static let tokenFaults: [Fault] = [
        claim(11, "iat", nil, .outOfTime), claim(11, "iat", "\(Login.now - 301)", .outOfTime),
        claim(11, "iat", "\(Login.now + 61)", .outOfTime), claim(11, "iat", "\"\(Login.now)\"", .outOfTime),
        claim(11, "iat", "-1", .outOfTime), claim(11, "iat", "1e300", .outOfTime), claim(11, "iat", "0", .outOfTime),
        claim(12, "ath", nil, .otherToken), claim(12, "ath", #""""#, .otherToken),
        claim(12, "ath", #""fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo""#, .otherToken),
        fault(12, "ath with padding", .otherToken) { $0.set("ath", "\"\(try Proof.hash(Proof.token))=\"") },
        fault(12, "ath in hexadecimal", .otherToken) {
            $0.set("ath", "\"\(try SHA256.digest(of: Array(Proof.token.utf8).span).hexadecimal)\"")
        },
        fault(12, "a sound proof of another key", .otherKey) { proof in
            proof.key = try #require(Proof.stranger)
            proof.set(header: "jwk", Proof.jwk(proof.key))
        },
    ]

    private static let faults = shapeFaults + headerFaults + keyFaults + requestFaults + tokenFaults

    @Test("Each clause of section 4.3 is kept", arguments: faults)
    func clauses(fault: Fault) throws {
        var proof = try Proof()
        try fault.bend(&proof)
        let text = try proof.make()
        #expect(Self.rejection { try Self.verify(text) } == fault.rejection)
        #expect(OpenSSLError.isQueueEmpty)
    }

    @Test("Every clause that a proof alone can break has its row")
    func coverage() {
        // (1), one field, is for the caller that sees the fields; (10) is about nonces, which are not given out.
        #expect(Set(Self.faults.map(\.clause)) == [2, 3, 4, 5, 6, 7, 8, 9, 11, 12])
    }

    @Test(
        "What is no JWT is refused (2)",
        arguments: [
            "", ".", "..", "a.b", "a.b.c", "e30.e30.", ".e30.AAAA", "e30.e30.AAAA.AAAA", "e30.e30.AAAA, e30.e30.AAAA",
        ]
    )
    func shapes(text: String) {
        #expect(Self.rejection { try Self.verify(text) } == .malformed)
    }

    @Test("A signature of another form is refused (6)")
    func signatures() throws {
        let proof = try Proof()
        let input = proof.signingInput
        let signature = try proof.key.signature(for: Array(input.utf8))
        func judge(_ signature: [UInt8]) -> DPoPRejection? {
            let text = input + "." + String(decoding: Base64URL.encode(signature), as: UTF8.self)
            return Self.rejection { try Self.verify(text) }
        }
        #expect(judge(signature) == nil)
        let zeros = [UInt8](repeating: 0, count: 32)
        let (first, second) = (Array(signature[..<32]), Array(signature[32...]))
        for bad in [
            Array(signature.dropLast()), signature + [0], [0] + signature, second + first, zeros + zeros, first + zeros,
            zeros + second, [UInt8](repeating: 0xFF, count: 64), first,
            [0x30, 0x06, 0x02, 0x01, 0x01, 0x02, 0x01, 0x01],
        ] {
            #expect(judge(bad) == .invalidSignature)
        }
        #expect(OpenSSLError.isQueueEmpty)
    }

    @Test("No bit of a proof can be changed", .timeLimit(.minutes(5)))
    func mutations() throws {
        let good = Array(try Proof().make().utf8)
        let thumbprint = try Proof.thumbprint(Proof.key)
        var accepted = 0
        for offset in good.indices {
            for bit in 0..<7 {
                var mutant = good
                mutant[offset] ^= 1 << UInt8(bit)
                let text = String(decoding: mutant, as: UTF8.self)
                if Self.rejection({ try Self.verify(text, thumbprint: thumbprint) }) == nil { accepted += 1 }
            }
        }
        #expect(good.count > 400 && accepted == 0)
    }

    @Test(
        "URLs that are the same request are the same (9)",
        arguments: [
            "https://api.example.com/login/me", "HTTPS://API.Example.COM/login/me",
            "https://api.example.com:443/login/me", "https://api.example.com:/login/me",
            "https://api.example.com/login/me?x=1", "https://api.example.com/login/me#x",
            "https://api.example.com/login/me?", "https://api.example.com/%6cogin/me",
            "https://api.example.com/./login/x/../me", "https://api.example.com/%2e/login/me",
        ]
    )
    func sameURL(url: String) throws {
        var proof = try Proof()
        proof.set("htu", "\"\(url)\"")
        let text = try proof.make()
        #expect(Self.rejection { try Self.verify(text) } == nil)
        let good = try Proof().make()
        #expect(Self.rejection { try Self.verify(good, url: url) } == nil)
    }

    @Test("Times at the bounds are accepted (11)", arguments: [Login.now - 300, Login.now, Login.now + 60])
    func times(moment: Int64) throws {
        var proof = try Proof()
        proof.set("iat", "\(moment)")
        let text = try proof.make()
        #expect(Self.rejection { try Self.verify(text) } == nil)
    }

    @Test("Members that mean nothing here are passed over, a nonce among them (10)")
    func otherMembers() throws {
        var proof = try Proof()
        proof.set("nonce", #""n""#)
        proof.set("x", #"{"y":[1]}"#)
        proof.set(header: "kid", #""k""#)
        proof.set(header: "jku", #""https://evil.test/keys""#)
        proof.set(
            header: "jwk",
            Proof.jwk(proof.key, adding: #","kid":"k","use":"sig","alg":"ES256","key_ops":["verify"],"x5u":"x""#)
        )
        let text = try proof.make()
        #expect(Self.rejection { try Self.verify(text) } == nil)
    }
}
