import LLJOSE
import Testing

@Suite("The JWS compact serialization")
struct JWSCompactSerializationTests {
    private func split(_ text: String) -> JWSCompactSerialization? {
        JWSCompactSerialization(splitting: Array(text.utf8).span)
    }

    @Test("The three parts get the right ranges")
    func parts() throws {
        let jws = try #require(split("abcdefghij.klmno.p"))
        #expect(jws.header == 0..<10 && jws.payload == 11..<16 && jws.signature == 17..<18)
        #expect(jws.signingInput == 0..<16)
        #expect(split("a..b")?.payload.isEmpty == true)
    }

    @Test(
        "Any other number of parts is refused, and a token without header or signature",
        arguments: ["", "abc", "a.b", ".", "a.b.c.d", "a.b.c.d.e", "...", ".a.b", "a.b.", ".."]
    )
    func refused(text: String) { #expect(split(text) == nil) }

    @Test("A full stop is found at each place of a long token, and a third one too", arguments: 1...100)
    func places(first: Int) throws {
        let part = String(repeating: "A", count: first)
        let token = "\(part).\(String(repeating: "B", count: 100 - first)).\(part)"
        let jws = try #require(split(token))
        #expect(jws.header == 0..<first)
        #expect(jws.payload == first + 1..<101)
        #expect(jws.signature == 102..<102 + first)
        #expect(split(token + ".") == nil)
    }
}
