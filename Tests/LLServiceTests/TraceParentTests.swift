import LLTestSupport
import LimitedLoginKeys
import Testing

@testable import LLService

@Suite("traceparent")
struct TraceParentTests {
    static let traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
    static let good = "00-\(traceID)-00f067aa0ba902b7-01"

    private static func traceID(of text: String) -> String? { TraceParent.fields(of: text).map { String($0[1]) } }

    @Test("A valid traceparent gives its trace id, and an invalid one gives none")
    func fields() {
        let (good, traceID): (String, String) = (Self.good, Self.traceID)
        for text in [good, good.replacing("00-4", with: "01-4"), "cc\(good.dropFirst(2))-x"] {
            #expect(Self.traceID(of: text) == traceID, "\(text)")
        }
        for text in [
            "", "00", String(good.dropLast()), good + "0", good + "-", good + "-x", "ff\(good.dropFirst(2))",
            good.uppercased(), good.replacing("-", with: "_"), "0g\(good.dropFirst(2))",
            "00-\(String(repeating: "0", count: 32))-00f067aa0ba902b7-01", "00-\(traceID)-0000000000000000-01",
            "00-\(traceID)-00f067aa0ba902b7-0x", "00-\(traceID)-00f067aa0ba902b7--1", " \(good.dropLast())",
            "00-\(traceID)000f067aa0ba902b7-01", "01\(good.dropFirst(2))x",
            "00-\(traceID.dropLast())\u{0}-00f067aa0ba902b7-01",
        ] { #expect(Self.traceID(of: text) == nil, "\(text)") }
    }
}

@Suite("traceparent is passed on", .live)
struct TraceParentCallTests {
    private static let good = TraceParentTests.good

    @Test("A call of Graph carries its own request's traceparent if that is valid, else none")
    func graph() async throws {
        let service = try await GraphService { _, peer in try peer.answerAndStay("{\"data\":[]}") }
        let path = "/users/2954873201847263/permissions"
        let later = "cc\(Self.good.dropFirst(2))-x"
        let cases: [([String], String?)] = [
            ([Self.good], Self.good), ([], nil), ([later], Self.good), ([Self.good + "x"], nil),
            ([Self.good, Self.good], nil), (["00-\(Self.good)"], nil),
        ]
        for (values, expected) in cases {
            let fields = ["X-Api-Key: \(GraphService.key)"] + values.map { "traceparent: \($0)" }
            #expect(try service.answer("GET", path, fields: fields).status == 200)
            let asked = try #require(service.graph.requests.last)
            #expect(asked.fields.filter { $0.name == "traceparent" }.map(\.value) == (expected.map { [$0] } ?? []))
        }
    }

    @Test("A fetch of keys carries the traceparent of the request that caused it; other fetches carry none")
    func keys() async throws {
        let service = try LiveService(["old"])
        #expect(await service.cache.refresh().isUsable)
        service.publish(["old", "new"])
        let plain = LiveService.request(try LiveService.token(keyID: "new"))
        let request = plain.replacing("Host: test\r\n", with: "Host: test\r\ntraceparent: \(Self.good)\r\n")
        #expect(try service.connect().exchange(request)?.status == 200)
        #expect(await service.cache.refresh().isUsable)
        #expect(service.issuer.requests.map { $0.value(of: "traceparent") } == [nil, Self.good, nil])
        await service.stop()
    }
}
