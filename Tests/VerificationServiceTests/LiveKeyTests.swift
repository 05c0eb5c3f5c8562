import Dispatch
import HTTPServer
import KeySets
import Sockets
import TestSupport
import Testing

@testable import VerificationService

@Suite("Keys under load", .live)
struct LiveKeyTests {
    /// An issuer whose key IDs a test names. A gated one answers its first request, and each later one when the test
    /// opens the gate.
    final class RotatingIssuer: Sendable {
        let issuer: ScriptedIssuer
        let gate = DispatchSemaphore(value: 0)
        private let keyIDs: Locked<[String]>

        init(_ keyIDs: [String], isGated: Bool = false) throws {
            let published = Locked(keyIDs)
            let gate = gate
            self.keyIDs = published
            issuer = try ScriptedIssuer(.tls(TestCertificates.shared.get().good)) { request, peer in
                if isGated && request.number > 1 { gate.wait() }
                try peer.answer(LiveService.keySet(published.withLock { $0 }))
            }
        }

        func publish(_ keyIDs: [String]) { self.keyIDs.withLock { $0 = keyIDs } }
    }

    @Test("200 connections through 10 rotations: one fetch each; known keys are answered while it is under way")
    func rotations() async throws {
        let gated = try RotatingIssuer(["constant"], isGated: true)
        var limits = LiveService.patient
        // The rotations of this test follow each other faster than the budget of life allows.
        limits.unknownKeyIDBurst = 20
        let service = try LiveService(issuer: gated.issuer, limits: limits)
        #expect(await service.cache.refresh().isUsable)
        let clients = try (0..<200).map { _ in try service.connect() }
        let known = LiveService.request(try LiveService.token(keyID: "constant"))
        for rotation in 1...10 {
            gated.publish(["key-\(rotation)", "constant"])
            let new = LiveService.request(try LiveService.token(keyID: "key-\(rotation)"))
            for client in clients[..<100] { client.send(new) }
            for client in clients[100...] { client.send(known) }
            // The issuer is held back until every known key has been answered.
            let knownAnswers = clients[100...].map { $0.readResponses(1).first?.status }
            #expect(knownAnswers.allSatisfy { $0 == 200 })
            gated.gate.signal()
            let newAnswers = clients[..<100].map { $0.readResponses(1).first?.status }
            #expect(newAnswers.allSatisfy { $0 == 200 })
        }
        #expect(gated.issuer.requestCount == 11)
        await service.stop()
        gated.issuer.stop()
    }

    @Test("A flood of unknown key IDs: a fetch in a budget's interval, 401 or 503 for each, every known key 200")
    func flood() async throws {
        let rotating = try RotatingIssuer(["known"])
        let service = try LiveService(issuer: rotating.issuer)
        #expect(await service.cache.refresh().isUsable)
        let known = LiveService.request(try LiveService.token(keyID: "known"))
        let began = MonotonicClock.now()
        var refused = 0
        let flooders = try (0..<8).map { _ in try service.connect() }
        let client = try service.connect()
        for round in 0..<50 {
            for (number, flooder) in flooders.enumerated() {
                let requests = try (0..<4).map { index in
                    LiveService.request(try LiveService.token(keyID: "unknown-\(round)-\(number)-\(index)"))
                }
                flooder.send(requests.joined())
            }
            #expect(client.exchange(known)?.status == 200)
            for flooder in flooders {
                let answers = flooder.readResponses(4)
                #expect(answers.count == 4)
                for answer in answers {
                    refused += answer.status == 401 ? 1 : 0
                    guard answer.status != 401 else { continue }
                    #expect(answer.code == "keys_unavailable")
                    #expect((1...5).contains(Int(answer["retry-after"] ?? "") ?? 0))
                }
            }
        }
        let intervals = MonotonicClock.now().duration(since: began) / .seconds(5)
        #expect(rotating.issuer.requestCount - 1 <= 2 + Int(intervals))
        #expect(refused > 0 && refused < 1600)
        #expect(service.cache.status.counters.unknownKeyIDs == 1600)
        await service.stop()
        rotating.issuer.stop()
    }

    @Test("A rotation in the middle of a flood: the new key is never 401, and 200 once Retry-After is over")
    func rotationInFlood() async throws {
        var isInTime = false
        // A slow machine needs a longer interval.
        for seconds in [2, 4, 8, 16, 32] where !isInTime { isInTime = try await Self.rotateInFlood(.seconds(seconds)) }
        #expect(isInTime)
    }

    /// - Returns: Whether the first new key came before the interval was over, so that it had to wait.
    private static func rotateInFlood(_ interval: Duration) async throws -> Bool {
        let rotating = try RotatingIssuer(["known"])
        var limits = LiveService.patient
        // The burst is the flood's.
        limits.unknownKeyIDInterval = interval
        let service = try LiveService(issuer: rotating.issuer, limits: limits)
        #expect(await service.cache.refresh().isUsable)
        var forged = 0
        /// The statuses of forged tokens, half of whose key IDs come twice.
        func flood() throws {
            let requests = try (0..<8).map { index in
                LiveService.request(try LiveService.token(keyID: "forged-\((forged + index) / 2)"))
            }
            forged += 8
            // A fast machine sends more in all than one connection may.
            let flooder = try service.connect()
            flooder.send(requests.joined())
            let answers = flooder.readResponses(8)
            try #require(answers.count == 8 && answers.allSatisfy { [401, 503].contains($0.status) })
        }
        let client = try service.connect()
        let began = MonotonicClock.now()
        var isInTime = false
        for rotation in 1...3 {
            let new = LiveService.request(try LiveService.token(keyID: "key-\(rotation)"))
            while service.cache.status.counters.fetchesForUnknownKeyIDs < 2 * rotation { try flood() }
            rotating.publish(["key-\(rotation)", "known"])
            var answer = client.exchange(new)
            if rotation == 1, MonotonicClock.now() < began + interval {
                isInTime = true
                #expect(answer?.status == 503)
            }
            if answer?.status == 503 {
                #expect(answer?.code == "keys_unavailable")
                let seconds = try #require(Int(answer?["retry-after"] ?? ""))
                #expect((1...Int(interval.components.seconds)).contains(seconds))
                let over = MonotonicClock.now() + .seconds(seconds)
                while MonotonicClock.now() < over { try flood() }
                answer = client.exchange(new)
            }
            #expect(answer?.status == 200)
        }
        await service.stop()
        rotating.issuer.stop()
        return isInTime
    }

    @Test("A key that left the set is refused on the next request, on every worker")
    func removal() async throws {
        let rotating = try RotatingIssuer(["old", "new"])
        let service = try LiveService(issuer: rotating.issuer)
        #expect(await service.cache.refresh().isUsable)
        let clients = try (0..<16).map { _ in try service.connect() }
        let old = LiveService.request(try LiveService.token(keyID: "old"))
        for client in clients { #expect(client.exchange(old)?.status == 200) }
        rotating.publish(["new"])
        _ = await service.cache.refresh()
        for client in clients { #expect(client.exchange(old)?.status == 401) }
        await service.stop()
        rotating.issuer.stop()
    }

    @Test("Clients that leave while they wait, and a stop while others wait, end cleanly")
    func leaveAndStop() async throws {
        let gated = try RotatingIssuer(["known"], isGated: true)
        let service = try LiveService(issuer: gated.issuer)
        #expect(await service.cache.refresh().isUsable)
        let clients = try (0..<40).map { _ in try service.connect() }
        let request = LiveService.request(try LiveService.token(keyID: "unknown"))
        for client in clients { client.send(request) }
        await eventually("all clients wait") { service.server.counters.parked >= 40 }
        #expect(service.server.counters.parked == 40)
        for client in clients[..<20] { client.reset() }
        service.cache.stop()
        let answers = clients[20...].map { $0.readResponses(1).first?.status }
        #expect(answers.allSatisfy { $0 == 503 })
        gated.gate.signal()
        await service.stop()
        gated.issuer.stop()
    }
}
