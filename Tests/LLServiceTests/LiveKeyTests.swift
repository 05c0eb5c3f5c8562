import Dispatch
import LLHTTP
import LLTestSupport
import LimitedLoginKeys
import Testing

@testable import LLService

@Suite("Keys under load", .live)
struct LiveKeyTests {
    @Test("200 connections through 10 rotations cause one fetch each, and known keys are answered meanwhile")
    func rotations() async throws {
        // The rotations of this test follow each other faster than the default interval allows.
        let service = try LiveService(["constant"], isGated: true, interval: .milliseconds(1))
        #expect(await service.cache.refresh().isUsable)
        let clients = try (0..<200).map { _ in try service.connect() }
        let known = LiveService.request(try LiveService.token(keyID: "constant"))
        for rotation in 1...10 {
            service.publish(["key-\(rotation)", "constant"])
            let new = LiveService.request(try LiveService.token(keyID: "key-\(rotation)"))
            for client in clients[..<100] { client.send(new) }
            for client in clients[100...] { client.send(known) }
            // The issuer waits until every request with a known key has been answered.
            let knownAnswers = clients[100...].map { $0.readResponses(1).first?.status }
            #expect(knownAnswers.allSatisfy { $0 == 200 })
            service.gate.signal()
            let newAnswers = clients[..<100].map { $0.readResponses(1).first?.status }
            #expect(newAnswers.allSatisfy { $0 == 200 })
        }
        #expect(service.issuer.requestCount == 11)
        await service.stop()
    }

    @Test("Waiting clients that leave, and others that wait during a stop, end cleanly")
    func leaveAndStop() async throws {
        let service = try LiveService(["known"], isGated: true)
        #expect(await service.cache.refresh().isUsable)
        let clients = try (0..<40).map { _ in try service.connect() }
        let request = LiveService.request(try LiveService.token(keyID: "unknown"))
        for client in clients { client.send(request) }
        await eventually("all clients wait") { service.server.counters.parked >= 40 }
        #expect(service.server.counters.parked == 40)
        for client in clients[..<10] { client.reset() }
        // A client that ends its direction has usually left; it gives up its place, and gets its answer if it is still there.
        for client in clients[10..<20] { client.shutdownWrite() }
        await eventually("those that left give up their places") { service.server.counters.parked == 20 }
        #expect(clients[10..<20].allSatisfy { $0.readResponses(1).first?.status == 429 })
        service.cache.stop()
        let answers = clients[20...].map { $0.readResponses(1).first?.status }
        #expect(answers.allSatisfy { $0 == 503 })
        service.gate.signal()
        await service.stop()
    }
}
