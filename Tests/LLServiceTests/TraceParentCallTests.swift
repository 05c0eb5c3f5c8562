import Dispatch
import LLTestSupport
import LimitedLoginKeys
import Testing

@testable import LLService

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
        let rotating = try LiveKeyTests.RotatingIssuer(["old"])
        let service = try LiveService(issuer: rotating.issuer)
        #expect(await service.cache.refresh().isUsable)
        rotating.publish(["old", "new"])
        let plain = LiveService.request(try LiveService.token(keyID: "new"))
        let request = plain.replacing("Host: test\r\n", with: "Host: test\r\ntraceparent: \(Self.good)\r\n")
        #expect(try service.connect().exchange(request)?.status == 200)
        #expect(await service.cache.refresh().isUsable)
        #expect(rotating.issuer.requests.map { $0.value(of: "traceparent") } == [nil, Self.good, nil])
        await service.stop()
        rotating.issuer.stop()
    }
}
