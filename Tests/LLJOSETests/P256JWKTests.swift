import LLJOSE
import Testing

@Suite("A P-256 key as a JWK")
struct P256JWKTests {
    /// The key of RFC 9449, figure 2.
    private static let published = #"""
        {"kty":"EC","x":"l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs","y":"9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA",\#
        "crv":"P-256"}
        """#

    private static func key(_ text: String) throws -> PublicKeyNumbers {
        var json = JSONObject(marksRepeatedMembers: true)
        json.bytes = Array(text.utf8)
        _ = try json.read()
        return try PublicKeyNumbers(es256: json, json.document.root)
    }

    @Test("The thumbprint is the one in RFC 9449 section 6.1")
    func thumbprint() throws {
        let key = try Self.key(Self.published)
        #expect(try key.thumbprint() == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")
    }

    @Test("Members in any order, escaped or unknown, give the same key")
    func spellings() throws {
        let key = try Self.key(Self.published)
        let spelt = Self.published.replacing("l8tF", with: #"l8\u0074F"#).replacing("P-256", with: #"P\u002d256"#)
        #expect(try Self.key(spelt) == key)
        #expect(
            try Self.key(Self.published.dropLast() + #","kid":"k","use":"sig","x5c":[],"key_ops":["verify"]}"#) == key
        )
        #expect(try Self.key(Self.published.dropLast() + #","alg":"ES256"}"#) == key)
    }

    @Test(
        "A JWK that is no public P-256 key for ES256 is refused with a reason",
        arguments: [
            ("[]", .notAnObject), ("{}", .malformedKeyType), (#"{"kty":5}"#, .malformedKeyType),
            (#"{"kty":"RSA"}"#, .unsupportedKeyType), (#"{"kty":"ec"}"#, .unsupportedKeyType),
            (#"{"kty":"EC"}"#, .unsupportedCurve), (#"{"kty":"EC","crv":"p-256"}"#, .unsupportedCurve),
            (#"{"kty":"EC","crv":"P-256","crv":"P-256"}"#, .repeatedMember),
            (#"{"kty":"EC","crv":"P-256"}"#, .malformedCoordinate),
            (#"{"kty":"EC","crv":"P-256","x":5,"y":5}"#, .malformedCoordinate),
            (#"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#, .malformedCoordinate),
            (published.dropLast() + #","d":"AA"}"#, .holdsPrivateMembers),
            (published.dropLast() + #","k":"AA"}"#, .holdsPrivateMembers),
            (published.dropLast() + #","use":"enc"}"#, .notForSignatures),
            (published.dropLast() + #","key_ops":["sign"]}"#, .notForVerifying),
            (published.dropLast() + #","alg":"RS256"}"#, .unsupportedAlgorithm),
            (published.replacing("l8tF", with: "AAl8tF"), .malformedCoordinate),
            (published.replacing("WBFs", with: "WBFs="), .malformedCoordinate),
            (published.replacing("WBFs", with: "WBFt"), .malformedCoordinate),
            (published.replacing("l8tF", with: "l8t+"), .malformedCoordinate),
        ] as [(String, JWKError)]
    )
    func refused(text: String, reason: JWKError) {
        #expect(throws: reason) { try Self.key(text) }
    }
}
