import OpenSSL
import Testing

@Suite("RSA keys")
struct RSAKeyTests {
    @Test("A signature verifies under its key and over its message alone")
    func roundTrip() throws {
        let key = try RSAPrivateKey.generate(bits: 2048)
        let other = try RSAPrivateKey.generate(bits: 2048)
        let message = Array("header.payload".utf8)
        let signature = try key.signature(for: message)
        let verifier = try RSAPublicKey(modulus: key.modulus, exponent: key.publicExponent)
        let stranger = try RSAPublicKey(modulus: other.modulus, exponent: other.publicExponent)
        let digest = try SHA256.digest(of: message.span)
        let wrong = try SHA256.digest(of: Array("header.payloae".utf8).span)
        #expect(key.publicExponent == [1, 0, 1])
        #expect(verifier.modulusByteCount == 256 && signature.count == 256)
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
}
