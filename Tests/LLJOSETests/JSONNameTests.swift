import LLJOSE
import Testing

/// The value of each named member that is found in an object, in the order of the names; nil if absent.
private func found(_ names: [String], in text: String) throws -> [String?] {
    var object = JSONObject(marksRepeatedMembers: true)
    object.bytes = Array(text.utf8)
    let isObject = try object.read()
    try #require(isObject)
    var nodes = InlineArray<32, UInt32>(repeating: 0)
    var span = nodes.mutableSpan
    object.findMembers(named: names.map { JSONName($0) }, nodes: &span)
    return names.indices.map { nodes[$0] == 0 ? nil : object.string(Int(nodes[$0])) }
}

@Suite("The member names that a reader knows")
struct JSONNameTests {
    @Test("A name of each length from 1 to 16 bytes is found, and none that differs in one byte")
    func lengths() throws {
        for count in 1...JSONName.byteLimit {
            let name = String("abcdefghijklmnop".prefix(count))
            #expect(try found([name], in: "{\"\(name)\":\"1\"}") == ["1"])
            for place in 0..<count {
                var other = Array(name.utf8)
                other[place] = UInt8(ascii: "X")
                #expect(try found([name], in: "{\"\(String(decoding: other, as: UTF8.self))\":\"1\"}") == [nil])
            }
            #expect(try found([name], in: "{\"\(name)q\":\"1\",\"\(name.dropLast())\":\"2\"}") == [nil])
        }
    }

    @Test("All names of a list are told apart, in any order")
    func order() throws {
        let names = (0..<32).map { "n\($0 * 7 % 32)" }
        let text = "{" + names.sorted().map { "\"\($0)\":\"\($0)\",\"x\($0)\":\"\"" }.joined(separator: ",") + "}"
        #expect(try found(names, in: text) == names)
    }

    @Test(
        "Whole names are compared after escape decoding, and only the object's own members count",
        arguments: [
            (#"{"\u0061lg":"1"}"#, "1"), (#"{"al\u0067":"1"}"#, "1"), (#"{"alg\u0000":"1"}"#, nil),
            (#"{"\u0041lg":"1"}"#, nil), (#"{"":"1"}"#, nil), (#"{"x":{"alg":"1"}}"#, nil), (#"{}"#, nil),
            (#"{"alg\u0061aaaaaaaaaaaaaaaaaaaaaaaaa":"1"}"#, nil), (#"{"alg":"1","alg":"2"}"#, "2"),
        ] as [(String, String?)]
    )
    func escapes(text: String, value: String?) throws {
        #expect(try found(["alg"], in: text) == [value])
    }
}
