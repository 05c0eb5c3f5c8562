import CLLOpenSSL
import LLBytes
import LLTestSupport
import Testing

@testable import LLJOSE

@Suite("P-256 keys")
struct P256KeyTests {
    private static func decoded(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        var value: [UInt8] = []
        return Base64URL.decode(bytes.span, bytes.indices, into: &value) ? value : []
    }

    @Test("A signature verifies only under its key and over its message")
    func roundTrip() throws {
        let key = try PrivateKey(.p256)
        let other = try PrivateKey(.p256)
        let verifier = try PublicKey(key.numbers)
        let stranger = try PublicKey(other.numbers)
        // Numbers with leading zeros, which DER leaves out, come up once in 128 signatures.
        for round in 0..<300 {
            let message = Array("header.payload \(round)".utf8)
            let signature = try key.signature(for: message)
            let digest = try SHA256.digest(of: message.span)
            let wrong = try SHA256.digest(of: Array("header.payloae".utf8).span)
            let verdicts = [
                verifier.isValidSignature(signature.span, of: digest),
                verifier.isValidSignature(signature.span, of: wrong),
                stranger.isValidSignature(signature.span, of: digest),
            ]
            #expect(signature.count == 64 && verdicts == [true, false, false])
        }
        #expect(OpenSSLError.isQueueEmpty)
    }

    @Test("The signature of RFC 7515 appendix A.3 is accepted, and refused with any bit changed")
    func publishedSignature() throws {
        let key = try PublicKey(
            .p256(
                x: Self.decoded("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"),
                y: Self.decoded("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")
            )
        )
        let input =
            "eyJhbGciOiJFUzI1NiJ9"
            + ".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
        let signature = Self.decoded(
            "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
        )
        let digest = try SHA256.digest(of: Array(input.utf8).span)
        let isValid = key.isValidSignature(signature.span, of: digest)
        #expect(isValid)
        var accepted = 0
        for bit in 0..<512 {
            var mutant = signature
            mutant[bit / 8] ^= 1 << UInt8(bit % 8)
            if key.isValidSignature(mutant.span, of: digest) { accepted += 1 }
        }
        #expect(accepted == 0 && OpenSSLError.isQueueEmpty)
    }

    @Test("A negative result of OpenSSL means an invalid signature: here the context is not ready to verify")
    func negativeResult() throws {
        let context = try unsafe #require(EVP_PKEY_CTX_new_from_name(nil, "RSA", nil))
        defer { unsafe EVP_PKEY_CTX_free(context) }
        let digest = try SHA256.digest(of: Array("x".utf8).span)
        let isValid = unsafe PublicKey.isValid([1].span, of: digest, in: context)
        #expect(!isValid && OpenSSLError.isQueueEmpty)
    }

    @Test("A signature with a number that is zero, the order or beyond it is refused")
    func bounds() throws {
        let key = try PrivateKey(.p256)
        let verifier = try PublicKey(key.numbers)
        let message = Array("m".utf8)
        let good = try key.signature(for: message)
        let digest = try SHA256.digest(of: message.span)
        let order = try #require(
            Hexadecimal.decode("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551".utf8)
        )
        let zero = [UInt8](repeating: 0, count: 32)
        let greatest = [UInt8](repeating: 0xFF, count: 32)
        let (first, second) = (Array(good[..<32]), Array(good[32...]))
        for bad in [
            zero + second, first + zero, order + second, first + order, greatest + greatest, zero + zero, first, [],
            good + [0], [0] + good, second + first,
        ] {
            let isValid = verifier.isValidSignature(bad.span, of: digest)
            #expect(!isValid)
        }
        #expect(OpenSSLError.isQueueEmpty)
    }

    @Test("Coordinates off the curve are no key")
    func points() throws {
        let (x, y) = try PrivateKey(.p256).coordinates
        let zero = [UInt8](repeating: 0, count: 32)
        let greatest = [UInt8](repeating: 0xFF, count: 32)
        var bent = y
        bent[31] ^= 1
        for (x, y) in [
            (zero, zero), (x, zero), (zero, y), (x, bent), (y, x), (greatest, y), (x, greatest), ([], []),
            (Array(x.dropFirst()), y), ([0] + x, y), (x, y + [0]),
        ] {
            #expect(throws: OpenSSLError.self) { try PublicKey(.p256(x: x, y: y)) }
        }
        #expect(OpenSSLError.isQueueEmpty)
    }

    @Test("A private key in PEM form signs; a key of another kind is refused")
    func pem() throws {
        // Made for this test with `openssl genpkey -algorithm EC`.
        let key = try PrivateKey(pem: Array(Self.pem.utf8))
        #expect(
            Hexadecimal.encode(key.coordinates.x) == "74576a62e42a57bdf53a3f2e950d74b5138ff8369836f0bf806843eb675fe793"
        )
        let message = Array("m".utf8)
        let signature = try key.signature(for: message)
        let verifier = try PublicKey(key.numbers)
        let isValid = verifier.isValidSignature(signature.span, of: try SHA256.digest(of: message.span))
        #expect(isValid)
        for other in [
            Self.pemOfAnotherCurve, "", "-----BEGIN PRIVATE KEY-----", Self.pem.replacing("PRIVATE", with: "PUBLIC"),
        ] {
            #expect(throws: OpenSSLError.self) { try PrivateKey(pem: Array(other.utf8)) }
        }
        #expect(OpenSSLError.isQueueEmpty)
    }

    private static let pem = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQglapKL5Lc+gc/VGlE
        x6ccBb95vaMMkig+EbJDxUqdE+2hRANCAAR0V2pi5CpXvfU6Py6VDXS1E4/4Npg2
        8L+AaEPrZ1/nk6UX0BJQdi/mX9L4iPGTOI11+vKI/Qf18g/UqwSPH6EE
        -----END PRIVATE KEY-----
        """

    private static let pemOfAnotherCurve = """
        -----BEGIN PRIVATE KEY-----
        MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDBX/NeTGu0B/gviuYxV
        jvt4WxYwWb16JKsYeQyvC3xVUABqMU5S+Z7avZvxkfc5iZ2hZANiAATO8nYjY0AQ
        xn5GMm30Dw+g5D1HZ4ahRy6jrQ0POq2ifrs28Qpp/8tO40/N6RbJIa67/ApbAve9
        m3MbtcgvnqZrykXxoZ1i65v+pBueb9E7zG7ays75e1Z/M5ZMZUfry+U=
        -----END PRIVATE KEY-----
        """
}
