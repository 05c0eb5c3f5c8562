import LLJOSE
import LLTestSupport

/// The public key of an issuer in the forms attackers use as a shared secret.
enum DER {
    /// RSAPublicKey (RFC 8017 appendix A.1.1).
    static func publicKey(_ key: PrivateKey) -> [UInt8] {
        value(0x30, integer(key.modulus) + integer(key.publicExponent))
    }

    /// SubjectPublicKeyInfo (RFC 5280 section 4.1).
    static func publicKeyInfo(_ key: PrivateKey) -> [UInt8] {
        let algorithm: [UInt8] = [
            0x30, 0x0D, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05, 0x00,
        ]
        return value(0x30, algorithm + value(0x03, [0] + publicKey(key)))
    }

    /// The PEM text with lines of 64 digits (RFC 7468).
    static func pem(_ bytes: [UInt8], _ label: String) -> [UInt8] {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var digits: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for index in 0..<4 {
                let isPadding = index > group.count
                digits.append(isPadding ? UInt8(ascii: "=") : alphabet[Int(bits >> UInt32(18 - 6 * index) & 63)])
            }
        }
        var text = Array("-----BEGIN \(label)-----\n".utf8)
        for start in stride(from: 0, to: digits.count, by: 64) {
            text += digits[start..<min(start + 64, digits.count)] + [0x0A]
        }
        return text + Array("-----END \(label)-----\n".utf8)
    }

    private static func integer(_ number: [UInt8]) -> [UInt8] {
        value(0x02, (number.first ?? 0) >= 0x80 ? [0] + number : number)
    }

    private static func value(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        switch content.count {
        case ..<128: [tag, UInt8(content.count)] + content
        case ..<256: [tag, 0x81, UInt8(content.count)] + content
        default: [tag, 0x82, UInt8(content.count >> 8), UInt8(content.count & 0xFF)] + content
        }
    }
}
