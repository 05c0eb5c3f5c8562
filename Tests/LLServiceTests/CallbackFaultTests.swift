import Foundation
import LLHTTP
import LLTestSupport
import Testing

@testable import LLService

@Suite("Callbacks with a failing backend", .live)
struct CallbackFaultTests {
    /// A failing backend: its behaviour, the answer to Facebook, the number of attempts and the counted result.
    struct Fault: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The manner of the backend's listener, whose certificate is made when the test runs; nil if nothing listens.
        let manner: (@Sendable (TestCertificates) -> ScriptedIssuer.Manner)?
        /// The time limit of an attempt: short if the backend hangs.
        let attemptTime: Duration
        let status: Int
        let attempts: Int
        let result: String
        let script: ScriptedIssuer.Script

        init(
            _ name: String,
            manner: (@Sendable (TestCertificates) -> ScriptedIssuer.Manner)? = { _ in .plain },
            _ status: Int,
            _ attempts: Int,
            _ result: String,
            attemptTime: Duration = .seconds(300),
            _ script: @escaping ScriptedIssuer.Script = { _, peer in try peer.answer() }
        ) {
            (testDescription, self.manner, self.status, self.attempts) = (name, manner, status, attempts)
            (self.result, self.attemptTime, self.script) = (result, attemptTime, script)
        }
    }

    private static func status(_ status: String, then next: String = "200 OK") -> ScriptedIssuer.Script {
        { request, peer in try peer.answer(status: request.number <= 2 ? status : next) }
    }

    /// Each outcome once. HTTPSClientTests has the hostile answers.
    static let faults: [Fault] = [
        Fault("none", manner: { .tls($0.good) }, 200, 1, "delivered"),
        Fault("500 twice", 200, 3, "delivered", status("500 Internal Server Error", then: "204 No Content")),
        Fault("500 always", 503, 3, "refused", status("500 Internal Server Error", then: "503 Service Unavailable")),
        Fault("429 twice", 200, 3, "delivered", status("429 Too Many Requests")),
        Fault("a reset at first", 200, 2, "delivered") { request, peer in
            if request.number == 1 { return peer.reset() }
            try peer.answer()
        },
        Fault("400", 503, 1, "refused", status("400 Bad Request")), Fault("down", manner: nil, 503, 0, "unreachable"),
        Fault("never a word", manner: { _ in .silent }, 503, 0, "timed_out", attemptTime: .seconds(1)),
        Fault("a cut in the answer's head", 503, 3, "unreachable") { _, peer in
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n")
        },
        Fault("no HTTP", 503, 1, "unreadable") { _, peer in try peer.send("ok\r\n\r\n") },
        Fault("a certificate of another name", manner: { .tls($0.wrongName) }, 503, 0, "tls_failed"),
    ]

    /// Bodies that cannot be read, after a head with a status of 2xx.
    static let unreadableBodies: [Fault] = [
        Fault("a coded body", 200, 1, "delivered") { _, peer in
            try peer.send("HTTP/1.1 202 Accepted\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx")
        },
        Fault("a body that never ends", 200, 1, "delivered", attemptTime: .seconds(6)) { _, peer in
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{")
            peer.waitUntilClosed()
        },
    ]

    @Test("Each fault of the backend has the documented outcome", arguments: faults)
    func outcome(fault: Fault) async throws {
        let service = try await CallbackService.make(
            fault.manner?(try TestCertificates.shared.get()) ?? .plain,
            limits: CallbackService.limits(attemptTime: fault.attemptTime),
            // No process listens on port 1.
            backendURL: fault.manner == nil ? "http://127.0.0.1:1/" : nil,
            script: fault.script
        )
        for name in ["deauthorize", "data-deletion"] {
            service.graph.forgetRequests()
            let answer = try service.call(name, CallbackService.good())
            #expect(answer.status == fault.status, "\(name)")
            if fault.status == 503 {
                #expect(answer.code == "callback_not_delivered" && answer["retry-after"] == "60")
            }
            // The backend may read an attempt after the service gave it up.
            await eventually("each attempt is read") { service.graph.requestCount >= fault.attempts }
            #expect(service.graph.requestCount == fault.attempts, "\(name)")
            // Every attempt has the same identifier and body.
            #expect(Set(service.graph.requests.map { $0.value(of: "webhook-id") }).count == min(1, fault.attempts))
            #expect(Set(service.graph.requests.map(\.body)).count == min(1, fault.attempts))
        }
        #expect(service.metric("limited_login_webhooks_total{result=\"\(fault.result)\"}") == 2)
        let lines = service.log.withLock { $0 }
        let told = lines.filter { $0.hasPrefix("callback not delivered") }
        #expect(told.count == (fault.status == 503 ? 2 : 0))
        // `printf 218471 | sha256sum`: the log identifies the person only to readers that know the id.
        let hash = "a16eadf35df86bf31b67643469cff09e096fc1823a4d1ad0325462615bfce650"
        #expect(told.allSatisfy { $0.contains(fault.result) && $0.contains(hash) })
        #expect(!lines.contains { $0.contains("218471") })
    }

    @Test("An accepted event counts as delivered, even if the answer cannot be read", arguments: unreadableBodies)
    func unreadableBody(fault: Fault) async throws {
        let limits = CallbackService.limits(attemptTime: fault.attemptTime)
        let service = try await CallbackService.make(limits: limits, script: fault.script)
        let answer = try service.call("data-deletion", CallbackService.good())
        #expect(answer.text.contains(CallbackService.statusURL + "?code="))
        // The answer to a deauthorize callback is shown to no person.
        #expect(try service.call("deauthorize", CallbackService.good()).text == "{}")
        let told = service.log.withLock { $0 }.filter { $0.hasPrefix("answer to a callback not used") }
        #expect(told.count == 1 && told.allSatisfy { $0.contains("222") && !$0.contains("218471") })
    }

    private static func request(user: Int) throws -> String {
        let form = FormParameters.encode([("signed_request", try CallbackService.good(user: user))])
        let fields = [CallbackService.formType]
        return GraphService.request("POST", "/callbacks/deauthorize", fields: fields, body: form)
    }

    @Test("Deliveries are bounded: a callback beyond the bound is 503 at once, with a log line and a metric")
    func bounded() async throws {
        var limits = CallbackService.limits()
        limits.threadCount = 1
        limits.queueLength = 1
        let service = try await CallbackService.make(limits: limits) { _, peer in peer.waitUntilClosed() }
        let waiting = try (0..<2).map { _ in try service.connect() }
        waiting[0].send(try Self.request(user: 1))
        await eventually("the backend is asked") { service.graph.requestCount == 1 }
        waiting[1].send(try Self.request(user: 2))
        await eventually("the other waits for the thread") { service.server.counters.parked == 2 }
        #expect(try service.call("deauthorize", CallbackService.good(user: 3)).status == 503)
        #expect((service.metric("limited_login_webhooks_total{result=\"unsent\"}") ?? 0) >= 1)
        #expect(service.log.withLock { $0.contains { $0.contains("too many deliveries are waiting") } })
        // A stop answers the callbacks that wait.
        await service.stop()
        for client in waiting { #expect(client.readResponses(1).first?.status == 503) }
    }
}
