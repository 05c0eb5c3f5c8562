import LLJOSE
import LLTestSupport
import Testing

@Suite("RSA keys")
struct RSAKeyTests {
    @Test("A signature verifies only under its key and over its message", arguments: [2048, 2051, 3072])
    func roundTrip(bits: Int) throws {
        let key = try PrivateKey(.rsa, bits: bits)
        let other = try PrivateKey(.rsa)
        let message = Array("header.payload".utf8)
        let signature = try key.signature(for: message)
        let verifier = try PublicKey(key.numbers)
        let stranger = try PublicKey(other.numbers)
        let digest = try SHA256.digest(of: message.span)
        let wrong = try SHA256.digest(of: Array("header.payloae".utf8).span)
        #expect(key.publicExponent == [1, 0, 1])
        #expect(verifier.signatureByteCount == (bits + 7) / 8 && signature.count == (bits + 7) / 8)
        let verdicts = [
            verifier.isValidSignature(signature.span, of: digest),
            verifier.isValidSignature(signature.span, of: wrong),
            stranger.isValidSignature(signature.span, of: digest),
            // A refusal leaves the context usable.
            verifier.isValidSignature(signature.span, of: digest),
        ]
        #expect(verdicts == [true, false, false, true])
        #expect(OpenSSLError.isQueueEmpty)
    }

    @Test("Trivial signatures and those beyond the modulus are refused")
    func representatives() throws {
        let key = try PrivateKey(.rsa)
        let verifier = try PublicKey(key.numbers)
        let digest = try SHA256.digest(of: [UInt8]().span)
        var below = key.modulus
        below[255] &-= 1
        let one = [UInt8](repeating: 0, count: 255) + [1]
        let signatures: [[UInt8]] = [
            Array(repeating: 0, count: 256), Array(repeating: 0xFF, count: 256), one, below, key.modulus, [],
        ]
        for signature in signatures {
            let verdict = verifier.isValidSignature(signature.span, of: digest)
            #expect(!verdict)
        }
        // A signature plus the modulus is congruent to the signature, and must be refused.
        var sum = try key.signature(for: [])
        var carry = 0
        for index in (0..<256).reversed() {
            carry += Int(sum[index]) + Int(key.modulus[index])
            sum[index] = UInt8(carry & 0xFF)
            carry >>= 8
        }
        let verdict = verifier.isValidSignature(sum.span, of: digest)
        #expect(!verdict)
        #expect(OpenSSLError.isQueueEmpty)
    }

    @Test(
        "Numbers that make no key are refused with a reason and leave no error behind",
        arguments: [
            ([], [3]), ([0], [3]), ([0xFF], [3]), (Array(repeating: 0xFF, count: 256), []),
            (Array(repeating: 0xFF, count: 256), [0, 0]), (Array(repeating: 0xFE, count: 256), [1, 0, 1]),
        ] as [([UInt8], [UInt8])]
    )
    func unusableNumbers(modulus: [UInt8], exponent: [UInt8]) {
        #expect(throws: OpenSSLError.self) { try PublicKey(.rsa(modulus: modulus, exponent: exponent)) }
        #expect(OpenSSLError.isQueueEmpty)
    }

    @Test("An error names the call and the reason, and empties the queue")
    func errors() throws {
        do {
            _ = try PrivateKey(pem: Array("x".utf8))
        } catch {
            #expect(error.operation == "PEM_read_bio_PrivateKey")
            #expect("\(error)".contains("no start line") || "\(error)".contains("unsupported"))
        }
        #expect(OpenSSLError.isQueueEmpty)
    }
}
