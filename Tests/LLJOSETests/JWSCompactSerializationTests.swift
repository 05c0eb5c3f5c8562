import LLJOSE
import Testing

@Suite("The JWS compact serialization")
struct JWSCompactSerializationTests {
    private func split(_ text: String) throws -> JWSCompactSerialization {
        try JWSCompactSerialization(splitting: Array(text.utf8).span)
    }

    @Test("The three parts get the right ranges")
    func parts() throws {
        let jws = try split("abcdefghij.klmno.p")
        #expect(jws.header == 0..<10 && jws.payload == 11..<16 && jws.signature == 17..<18)
        #expect(jws.signingInput == 0..<16)
        #expect(try split("a..b").payload.isEmpty)
    }

    @Test(
        "Any other number of parts is refused and counted",
        arguments: [("", 1), ("abc", 1), ("a.b", 2), (".", 2), ("a.b.c.d", 4), ("a.b.c.d.e", 5), ("...", 4)]
    )
    func counts(text: String, count: Int) {
        #expect(throws: JWSError.notThreeParts(count: count)) { try split(text) }
    }

    @Test("A token without header or signature is refused")
    func emptyParts() {
        #expect(throws: JWSError.emptyHeader) { try split(".a.b") }
        #expect(throws: JWSError.emptySignature) { try split("a.b.") }
        #expect(throws: JWSError.emptyHeader) { try split("..") }
    }

    @Test("A full stop is found at each place of a long token, and a third one too", arguments: 1...100)
    func places(first: Int) throws {
        let part = String(repeating: "A", count: first)
        let token = Array("\(part).\(String(repeating: "B", count: 100 - first)).\(part)".utf8)
        let jws = try JWSCompactSerialization(splitting: token.span)
        #expect(jws.header == 0..<first)
        #expect(jws.payload == first + 1..<101)
        #expect(jws.signature == 102..<102 + first)
        let four = token + Array(".".utf8)
        #expect(throws: JWSError.notThreeParts(count: 4)) { try JWSCompactSerialization(splitting: four.span) }
    }
}
