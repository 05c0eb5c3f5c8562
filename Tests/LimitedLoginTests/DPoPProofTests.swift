import LLBytes
import LLJOSE
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

extension Proof {
    /// A good proof for the request of these tests, judged at `Login.now`.
    fileprivate init() throws { try self.init(token: DPoPProofTests.token, now: Login.now) }
}

@Suite("A DPoP proof (RFC 9449)")
struct DPoPProofTests {
    fileprivate static let token = "eyJ.the.token"

    private static func verify(
        _ proof: String,
        method: String = "GET",
        url: String = Proof.url,
        token: String = Self.token,
        thumbprint: String? = nil,
        skew: Int = 60,
        at now: NumericDate = Login.sharedNow
    ) throws -> DPoPProof {
        try DPoPProof(
            verifying: proof,
            method: method,
            url: url,
            token: token,
            keyThumbprint: thumbprint ?? Proof.key.thumbprint(),
            clockSkew: .seconds(skew),
            now: now
        )
    }

    @Test("A proof of the token's own device is accepted, and gives its jti and its time")
    func accepted() throws {
        let proof = try Self.verify(Proof().make())
        #expect(proof.tokenID == "e1j3V_bKic8-LAEB" && proof.issuedAt.secondsSince1970 == Double(Login.now - 5))
        #expect(try proof.keyThumbprint == Proof.key.thumbprint() && proof.keyThumbprint.utf8.count == 43)
    }

    @Test("A proof's iat may be ahead by the skew, but by at most 300 seconds", arguments: Login.skews)
    func skew(seconds: Int, ahead: Int64, isAccepted: Bool) throws {
        var proof = try Proof()
        proof.set("iat", "\(Login.now + ahead)")
        let text = try proof.make()
        let rejection = Login.rejection { try Self.verify(text, skew: seconds) }
        #expect((rejection == nil) == isAccepted && rejection?.detail.contains("iat is ") != false)
    }

    @Test("A proof with an exp or nbf of its own is accepted within it and the skew, and until it is 300 s old")
    func ownTime() throws {
        var proof = try Proof()
        for (name, moment) in [
            ("exp", Login.now + 1), ("exp", Login.now - 60), ("nbf", Login.now), ("nbf", Login.now + 60),
            ("iat", Login.now - 300),
        ] {
            proof.set(name, "\(moment)")
            let text = try proof.make()
            #expect(Login.rejection { try Self.verify(text, skew: 60) } == nil, "\(name) \(moment)")
        }
    }

    /// The example proof of RFC 9449 section 7.1.
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
        func rejection(_ token: String, _ url: String, _ thumbprint: String) -> Rejection? {
            Login.rejection {
                try Self.verify(Self.published, url: url, token: token, thumbprint: thumbprint, at: now)
            }
        }
        #expect(rejection(token, url, thumbprint) == nil)
        #expect(rejection(token + "x", url, thumbprint) == .proofOfOtherToken)
        #expect(rejection(token, url + "s", thumbprint)?.detail.contains("URL is \(url)s.") == true)
        #expect(try rejection(token, url, Proof.key.thumbprint()) == .proofOfOtherKey)
    }

    @Test("Each clause of section 4.3 is enforced", arguments: ProofFault.table)
    func clauses(fault: ProofFault) throws {
        var proof = try Proof()
        try fault.bend(&proof)
        let text = try proof.make()
        #expect(Login.rejection { try Self.verify(text) }?.detail == fault.sentence)
        #expect(OpenSSLError.isQueueEmpty)
    }

    @Test(
        "Text that is no JWT is refused (2)",
        arguments: [
            "", ".", "..", "a.b", "a.b.c", "e30.e30.", ".e30.AAAA", "e30.e30.AAAA.AAAA", "e30.e30.AAAA, e30.e30.AAAA",
        ]
    )
    func shapes(text: String) {
        #expect(Login.rejection { try Self.verify(text) } == .proofMalformed)
    }

    @Test("A proof with any bit changed is refused", .timeLimit(.minutes(5)))
    func mutations() throws {
        let good = Array(try Proof().make().utf8)
        let thumbprint = try Proof.key.thumbprint()
        for offset in good.indices {
            for bit in 0..<7 {
                var mutant = good
                mutant[offset] ^= 1 << UInt8(bit)
                let text = String(decoding: mutant, as: UTF8.self)
                #expect(throws: Rejection.self) { try Self.verify(text, thumbprint: thumbprint) }
            }
        }
    }

    @Test(
        "Equivalent URLs are the same (9)",
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
        #expect(Login.rejection { try Self.verify(text) } == nil)
        let good = try Proof().make()
        #expect(Login.rejection { try Self.verify(good, url: url) } == nil)
    }

    @Test(
        "A proof from the stand-in names its URL without query and fragment (RFC 9449 section 4.2)",
        arguments: ["", "?", "?x=1", "#x", "?x=1#x", "#x?x=1"]
    )
    func minted(end: String) throws {
        let url = Proof.url + end
        let proof = try Proof.key.mint(method: "GET", url: url, token: Self.token, issuedAt: Login.now)
        let text = Array(proof.split(separator: ".")[1].utf8)
        var payload: [UInt8] = []
        #expect(Base64URL.decode(text.span, text.indices, into: &payload))
        let target = String(decoding: payload, as: UTF8.self).replacing(#"\/"#, with: "/")
        #expect(target.hasPrefix(#"{"htm":"GET","htu":"\#(Proof.url)","iat":"#))
    }

    @Test("Members without a meaning here are ignored, also a nonce (10)")
    func otherMembers() throws {
        var proof = try Proof()
        proof.set("nonce", #""n""#)
        proof.set("x", #"{"y":[1]}"#)
        proof.set(header: "kid", #""k""#)
        proof.set(header: "jku", #""https://evil.test/keys""#)
        proof.set(
            header: "jwk",
            proof.minter.jsonWebKey.dropLast()
                + #","kid":"k","use":"sig","alg":"ES256","key_ops":["verify"],"x5u":"x"}"#
        )
        let text = try proof.make()
        #expect(Login.rejection { try Self.verify(text) } == nil)
    }
}
