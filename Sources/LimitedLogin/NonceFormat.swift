/// The bytes of an issued nonce, version 1: version (1), time of issue (6), expiry (6), random (16), tag (16); the times
/// in milliseconds since 1970, most significant byte first.
enum NonceFormat {
    static let version: UInt8 = 1
    static let issueOffset = 1
    static let expiryOffset = 7
    static let randomOffset = 13
    /// Everything but the tag.
    static let bodyByteCount = 29
    static let tagByteCount = 16
    /// A multiple of three, so that base64url has no bits over, and each nonce exactly one spelling.
    static let byteCount = 45
    static let textByteCount = 60
    /// Six bytes hold milliseconds below this.
    static let milliseconds: UInt64 = 1 << 48

    /// What the tag is of begins with this, so that no other use of the secret could yield a tag.
    private static let domain = Array("limited-login nonce v1\0".utf8)

    static func body(issuedAt: UInt64, expiresAt: UInt64, random: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = [version]
        bytes.reserveCapacity(byteCount)
        append(issuedAt, to: &bytes)
        append(expiresAt, to: &bytes)
        bytes += random
        return bytes
    }

    /// What the tag is of: the domain, the app ID behind its length, the body. The length keeps them apart.
    static func message(_ body: Span<UInt8>, _ appID: Span<UInt8>) -> [UInt8] {
        var message = domain
        for shift in [24, 16, 8, 0] { message.append(UInt8(truncatingIfNeeded: appID.count >> shift)) }
        for index in 0..<appID.count { message.append(appID[index]) }
        for index in 0..<body.count { message.append(body[index]) }
        return message
    }

    /// The six bytes at `offset`; the body has ``bodyByteCount`` bytes, so that both offsets lie within it.
    static func milliseconds(in body: Span<UInt8>, at offset: Int) -> UInt64 {
        var value: UInt64 = 0
        for index in offset..<offset + 6 { value = value << 8 | UInt64(body[index]) }
        return value
    }

    private static func append(_ value: UInt64, to bytes: inout [UInt8]) {
        for shift: UInt64 in [40, 32, 24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }
}
