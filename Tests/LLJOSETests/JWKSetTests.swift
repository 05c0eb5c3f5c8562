import LLBytes
import LLJOSE
import LLStandIn
import LLTestSupport
import Testing

@Suite("A JWK Set")
struct JWKSetTests {
    private static let good = StandInKeys.current.jsonWebKey
    private static let other = StandInKeys.previous.jsonWebKey

    private func set(_ keys: String...) throws -> JWKSet {
        try JWKSet(parsing: "{\"keys\":[" + keys.joined(separator: ",") + "]}")
    }

    /// The good key with one member replaced; nil removes it.
    private static func bent(_ name: String, _ json: String?, keyID: String = "bent") -> String {
        let key = StandInKeys.current.key
        var members = [
            ("kid", "\"\(keyID)\""), ("kty", "\"RSA\""), ("alg", "\"RS256\""), ("use", "\"sig\""),
            ("n", number(key.modulus)), ("e", number(key.publicExponent)),
        ]
        members.removeAll { $0.0 == name }
        if let json { members.append((name, json)) }
        return FacebookJSON.object(members.map { (name: $0.0, json: $0.1) })
    }

    private static func number(_ bytes: [UInt8]) -> String { "\"\(Base64URL.encode(bytes))\"" }

    @Test("A set in Facebook's form is read with its numbers")
    func reading() throws {
        let set = try set(Self.good, Self.other)
        #expect(set.keys.map(\.keyID) == [StandInKeys.current.keyID, StandInKeys.previous.keyID])
        #expect(set.keys[0].modulus == StandInKeys.current.key.modulus)
        #expect(set.keys[0].publicExponent == [1, 0, 1])
        #expect(set.keys[0].modulusBitCount == 2048)
        #expect(set.ignoredKeys.isEmpty)
        #expect(set.key(withID: StandInKeys.previous.keyID) == set.keys[1])
        #expect(set.key(withID: "") == nil)
    }

    @Test(
        "A key that cannot verify RS256 is ignored with a reason; a good key beside it is used",
        arguments: [
            ("kty", nil, .malformedKeyType), ("kty", "1", .malformedKeyType), ("kty", "\"EC\"", .unsupportedKeyType),
            ("kty", "\"rsa\"", .unsupportedKeyType), ("kty", "\"oct\"", .unsupportedKeyType),
            ("use", "\"enc\"", .notForSignatures), ("use", "1", .notForSignatures), ("use", "null", .notForSignatures),
            ("key_ops", "[]", .notForVerifying), ("key_ops", "[\"sign\"]", .notForVerifying),
            ("key_ops", "[\"verify\",\"verify\"]", .notForVerifying), ("key_ops", "[\"verify\",1]", .notForVerifying),
            ("key_ops", "\"verify\"", .notForVerifying), ("key_ops", "[\"verify\",\"encrypt\"]", .notForVerifying),
            ("alg", "\"RS512\"", .unsupportedAlgorithm), ("alg", "\"PS256\"", .unsupportedAlgorithm),
            ("alg", "\"HS256\"", .unsupportedAlgorithm), ("alg", "256", .unsupportedAlgorithm),
            ("kid", nil, .missingKeyID), ("kid", "7", .missingKeyID), ("kid", "\"\"", .missingKeyID),
            ("d", "\"AQAB\"", .holdsPrivateMembers), ("p", "\"AQAB\"", .holdsPrivateMembers),
            ("k", "\"AQAB\"", .holdsPrivateMembers), ("oth", "[]", .holdsPrivateMembers),
            ("n", nil, .malformedNumber), ("n", "1", .malformedNumber), ("n", "\"\"", .malformedNumber),
            ("n", "\"A===\"", .malformedNumber), ("e", nil, .malformedNumber), ("e", "65537", .malformedNumber),
            ("e", "\"\"", .malformedNumber), ("e", "\"AAEAAQ\"", .malformedNumber),
            ("e", "\"AQAB=\"", .malformedNumber),
            ("e", "\"AQ\"", .unsafeExponent), ("e", "\"Ag\"", .unsafeExponent), ("e", "\"AQAA\"", .unsafeExponent),
            ("e", "\"AgAAAAE\"", .unsafeExponent), ("e", "\"AQEBAQEB\"", .unsafeExponent),
            ("n", "\"_w\"", .modulusTooShort),
        ] as [(String, String?, JWKError)]
    )
    func ignoredKeys(member: String, json: String?, reason: JWKError) throws {
        let set = try set(Self.bent(member, json), Self.other)
        #expect(set.keys.map(\.keyID) == [StandInKeys.previous.keyID])
        #expect(set.ignoredKeys.map(\.reason) == [reason])
        #expect(set.ignoredKeys.first?.index == 0)
    }

    @Test(
        "A key is usable without optional members, and with any allowed value of one",
        arguments: [
            ("use", nil), ("alg", nil), ("key_ops", "[\"verify\"]"), ("key_ops", "[\"sign\",\"verify\"]"),
            ("e", "\"Aw\""), ("e", "\"AQAAAAE\""), ("x5c", "[1]"), ("jku", "\"https://evil\""),
        ] as [(String, String?)]
    )
    func usableKeys(member: String, json: String?) throws {
        let set = try JWKSet(parsing: "{\"version\":[1],\"keys\":[\(Self.bent(member, json))],\"next\":null}")
        #expect(set.keys.count == 1 && set.ignoredKeys.isEmpty)
    }

    @Test("An element that is not an object or repeats a member is ignored; other keys are used")
    func oddElements() throws {
        let repeating = "{\"kty\":\"RSA\",\"kty\":\"RSA\"}"
        let set = try set("1", "null", "[]", "\"x\"", "{}", repeating, Self.good)
        #expect(set.keys.count == 1)
        #expect(
            set.ignoredKeys.map(\.reason) == [
                .notAnObject, .notAnObject, .notAnObject, .notAnObject, .malformedKeyType, .repeatedMember,
            ]
        )
    }

    @Test("One leading zero octet of a modulus is accepted, two are refused")
    func leadingZeros() throws {
        let modulus = StandInKeys.current.key.modulus
        let set = try set(
            Self.bent("n", Self.number([0] + modulus), keyID: "one"),
            Self.bent("n", Self.number([0, 0] + modulus))
        )
        #expect(set.keys.map(\.modulus) == [modulus])
        #expect(set.ignoredKeys.map(\.reason) == [.malformedNumber])
    }

    @Test("The size of a modulus is bounded on both sides, and small factors are found")
    func moduli() throws {
        func modulus(bits: Int, last: UInt8 = 0xFF) -> String {
            // This number may have a small factor by chance; the reason shows which rule is checked first.
            var bytes = [UInt8](repeating: 0xA5, count: (bits + 7) / 8)
            bytes[0] = UInt8(1) << UInt8((bits - 1) % 8)
            bytes[bytes.count - 1] = last
            return Self.number(bytes)
        }
        func reason(_ json: String) throws -> JWKError? {
            try set(Self.bent("n", json)).ignoredKeys.first?.reason
        }
        #expect(try reason(modulus(bits: 2047)) == .modulusTooShort)
        #expect(try reason(modulus(bits: 2048, last: 0xFE)) == .modulusHasSmallFactor)
        #expect(try reason(modulus(bits: 8193)) == .modulusTooLong)
        #expect(try reason(modulus(bits: 16_384)) == .modulusTooLong)
        // A multiple of 3: its bytes sum to 129, and 256 is 1 modulo 3.
        var multiple = [UInt8](repeating: 0, count: 256)
        multiple[0] = 0x80
        multiple[255] = 0x01
        #expect(try reason(Self.number(multiple)) == .modulusHasSmallFactor)
    }

    @Test("Different keys with the same ID are ignored; equal keys count once")
    func namesakes() throws {
        let one = Self.bent("use", nil, keyID: "x")
        let same = Self.bent("alg", nil, keyID: "x")
        let different = Self.bent("n", Self.number(StandInKeys.previous.key.modulus), keyID: "x")
        let equal = try set(one, same, Self.good)
        #expect(equal.keys.map(\.keyID) == ["x", StandInKeys.current.keyID])
        #expect(equal.ignoredKeys.map(\.reason) == [.repeatedKey])
        let ambiguous = try set(one, different, Self.good)
        #expect(ambiguous.keys.map(\.keyID) == [StandInKeys.current.keyID])
        #expect(ambiguous.ignoredKeys.map(\.reason) == [.ambiguousKeyID, .ambiguousKeyID])
    }

    @Test("A key ID beyond 256 bytes is refused and not reported")
    func longKeyID() throws {
        let longest = String(repeating: "k", count: 256)
        let set = try set(Self.bent("use", nil, keyID: longest), Self.bent("use", nil, keyID: longest + "k"))
        #expect(set.keys.map(\.keyID) == [longest])
        #expect(set.ignoredKeys.map(\.keyID) == [nil])
        #expect(set.ignoredKeys.map(\.reason) == [.keyIDTooLong])
    }

    @Test(
        "A text that is no JWK Set is refused whole",
        arguments: [
            "[]", "{}", "null", "{\"keys\":{}}", "{\"keys\":null}", "{\"keys\":[],\"keys\":[]}", "{\"Keys\":[]}",
            "{\"kty\":\"RSA\"}",
        ]
    )
    func notASet(text: String) {
        #expect(throws: JWKSetError.notAKeySet) { try JWKSet(parsing: text) }
    }

    @Test(
        "A text that is not JSON is refused with the place",
        arguments: ["", "<html>", "{\"keys\":[", "{\"keys\":[]} x"]
    )
    func notJSON(text: String) {
        #expect { try JWKSet(parsing: text) } throws: { error in
            error is JWKSetError && "\(error)".contains("at byte") && "\(error)".contains("not JSON")
        }
    }

    @Test("A set of 64 keys is read; 65 keys or a text beyond 64 KiB are refused")
    func bounds() throws {
        func keys(_ count: Int) -> String { Array(repeating: "{}", count: count).joined(separator: ",") }
        #expect(try set(keys(64)).ignoredKeys.count == 64)
        #expect(throws: JWKSetError.tooManyKeys) { try set(keys(65)) }
        #expect(throws: JWKSetError.tooManyKeys) { try set(keys(10_000)) }
        let padded = "{\"keys\":[]" + String(repeating: " ", count: 65_536 - 11) + "}"
        #expect(try JWKSet(parsing: padded).keys.isEmpty)
        #expect(throws: JWKSetError.tooLong) { try JWKSet(parsing: padded + " ") }
    }

    @Test("A set made from keys checks them like a parsed set")
    func madeSet() throws {
        let key = try JWK(
            keyID: "a",
            modulus: StandInKeys.current.key.modulus,
            publicExponent: StandInKeys.current.key.publicExponent
        )
        #expect(JWKSet(keys: [key]).keys == [key])
        #expect(JWKSet(keys: [key, key]).keys == [key])
        #expect(throws: JWKError.missingKeyID) {
            try JWK(keyID: "", modulus: key.modulus, publicExponent: key.publicExponent)
        }
    }

    @Test("The thumbprint is that of RFC 7638 section 3.1")
    func thumbprint() throws {
        let n =
            "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
        let set = try set("{\"kty\":\"RSA\",\"n\":\"\(n)\",\"e\":\"AQAB\",\"alg\":\"RS256\",\"kid\":\"2011-04-29\"}")
        #expect(set.keys.first?.thumbprint == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs")
    }
}
