import LLJOSE
import Testing

@Suite("Digests and comparisons")
struct SHA256Tests {
    @Test(
        "SHA-256 gives the digests of FIPS 180-4's examples",
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
        ]
    )
    func digests(text: String, digest: String) throws {
        let message = Array(text.utf8)
        #expect(try SHA256.digest(of: message.span).hexadecimal == digest)
    }

    @Test("HMAC-SHA-256 gives the codes of RFC 4231, test cases 1 and 2")
    func authenticationCodes() throws {
        let first = try HMACSHA256.authenticationCode(
            for: Array("Hi There".utf8).span,
            key: Array(repeating: UInt8(0x0B), count: 20).span
        )
        #expect(first.hexadecimal == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
        let second = try HMACSHA256.authenticationCode(
            for: Array("what do ya want for nothing?".utf8).span,
            key: Array("Jefe".utf8).span
        )
        #expect(second.hexadecimal == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        let empty: [UInt8] = []
        let third = try HMACSHA256.authenticationCode(for: empty.span, key: empty.span)
        #expect(third.hexadecimal == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
    }

    @Test("Two byte strings are equal only if every byte is")
    func comparison() {
        func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool { ConstantTime.areEqual(left.span, right.span) }
        #expect(areEqual([], []))
        #expect(areEqual([1, 2, 3], [1, 2, 3]))
        #expect(!areEqual([1, 2, 3], [1, 2]))
        #expect(!areEqual([1, 2, 3], [1, 2, 4]))
        #expect(!areEqual([], [0]))
    }

    @Test("Random bytes have the requested count and do not repeat")
    func randomBytes() throws {
        let one = try RandomBytes.make(count: 32)
        let two = try RandomBytes.make(count: 32)
        #expect(one.count == 32 && two.count == 32 && one != two)
        #expect(try RandomBytes.make(count: 0).isEmpty)
    }
}
