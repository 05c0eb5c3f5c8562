import Foundation
import LLBytes
import LLHTTPClient
import LLHTTPServer
import LLSockets
import LLTestSupport
import Testing

@testable import LLService

@Suite("Callbacks with a failing backend", .live)
struct CallbackFaultTests {
    /// A failing backend: its behaviour, the answer to Facebook, the number of attempts and the counted result.
    struct Fault: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var manner = Manner.plain
        /// The time limit of an attempt: short if the backend hangs.
        var attemptTime = Duration.seconds(300)
        let status: Int
        let attempts: Int
        let result: String
        var script: ScriptedIssuer.Script = { _, peer in try peer.answer() }

        /// The certificate is made when the test runs.
        enum Manner: Sendable { case plain, tls, wrongName, untrusted, silent, resetting, closed }
    }

    private static func status(_ status: String, then next: String = "200 OK") -> ScriptedIssuer.Script {
        { request, peer in try peer.answer(status: request.number <= 2 ? status : next) }
    }

    static let faults: [Fault] = [
        Fault(testDescription: "none", manner: .tls, status: 200, attempts: 1, result: "delivered"),
        Fault(
            testDescription: "500 twice",
            status: 200,
            attempts: 3,
            result: "delivered",
            script: status("500 Internal Server Error", then: "204 No Content")
        ),
        Fault(
            testDescription: "500 always",
            status: 503,
            attempts: 3,
            result: "refused",
            script: status("500 Internal Server Error", then: "503 Service Unavailable")
        ),
        Fault(
            testDescription: "429 twice",
            status: 200,
            attempts: 3,
            result: "delivered",
            script: status("429 Too Many Requests")
        ),
        Fault(testDescription: "400", status: 503, attempts: 1, result: "refused", script: status("400 Bad Request")),
        Fault(testDescription: "404", status: 503, attempts: 1, result: "refused", script: status("404 Not Found")),
        Fault(testDescription: "down", manner: .closed, status: 503, attempts: 0, result: "unreachable"),
        Fault(
            testDescription: "never a word",
            manner: .silent,
            attemptTime: .seconds(1),
            status: 503,
            attempts: 0,
            result: "timed_out"
        ),
        Fault(testDescription: "a reset", manner: .resetting, status: 503, attempts: 0, result: "unreachable"),
        Fault(
            testDescription: "a reset once",
            status: 200,
            attempts: 2,
            result: "delivered",
            script: { request, peer in
                if request.number == 1 { return peer.reset() }
                try peer.answer()
            }
        ),
        Fault(
            testDescription: "a cut in the answer's head",
            status: 503,
            attempts: 3,
            result: "unreachable",
            script: { _, peer in try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n") }
        ),
        Fault(
            testDescription: "an answer byte by byte",
            attemptTime: .seconds(1),
            status: 503,
            attempts: 3,
            result: "timed_out",
            script: { _, peer in
                let fields = String(repeating: "Name: value\r\n", count: 80)
                try peer.drip("HTTP/1.1 200 OK\r\n" + fields, every: .milliseconds(20))
            }
        ),
        Fault(
            testDescription: "no HTTP",
            status: 503,
            attempts: 1,
            result: "unreadable",
            script: { _, peer in try peer.send("ok\r\n\r\n") }
        ),
        Fault(
            testDescription: "500 always, with a coded body",
            status: 503,
            attempts: 3,
            result: "refused",
            script: { _, peer in
                try peer.answer(status: "500 X", fields: ["Content-Encoding: gzip"], "x")
            }
        ),
        Fault(
            testDescription: "400, with a body too long",
            status: 503,
            attempts: 1,
            result: "refused",
            script: { _, peer in try peer.answer(status: "400 X", Array(repeating: 0x20, count: 70_000)) }
        ),
        Fault(
            testDescription: "a certificate of another name",
            manner: .wrongName,
            status: 503,
            attempts: 0,
            result: "tls_failed"
        ),
        Fault(
            testDescription: "a certificate of nobody's",
            manner: .untrusted,
            status: 503,
            attempts: 0,
            result: "tls_failed"
        ),
    ]

    /// Bodies that cannot be read, after a head with a status of 2xx.
    static let unreadableBodies: [Fault] =
        [
            ("a coded body", "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx"),
            ("a body too long", "Content-Length: 70000\r\n\r\n" + String(repeating: " ", count: 70_000)),
            ("a body that is cut", "Content-Length: 2\r\n\r\n{"),
            ("chunks that are none", "Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
            ("chunks that are cut", "Transfer-Encoding: chunked\r\n\r\n5\r\n{"),
        ].map { name, rest in
            Fault(testDescription: name, status: 200, attempts: 1, result: "delivered") { _, peer in
                try peer.send("HTTP/1.1 202 Accepted\r\n" + rest)
            }
        } + [
            Fault(
                testDescription: "a body that never ends",
                attemptTime: .seconds(3),
                status: 200,
                attempts: 1,
                result: "delivered"
            ) { _, peer in
                try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{")
                peer.waitUntilClosed()
            }
        ]

    private static func manner(_ manner: Fault.Manner) throws -> ScriptedIssuer.Manner {
        let certificates = try TestCertificates.shared.get()
        return switch manner {
        case .plain, .closed: .plain
        case .tls: .tls(certificates.good)
        case .wrongName: .tls(certificates.wrongName)
        case .untrusted: .tls(certificates.untrusted)
        case .silent: .silent
        case .resetting: .resetting
        }
    }

    @Test("Each fault of the backend has the documented outcome", arguments: faults + unreadableBodies)
    func outcome(fault: Fault) async throws {
        let service = try await CallbackService(
            Self.manner(fault.manner),
            limits: CallbackService.limits(attemptTime: fault.attemptTime),
            // No process listens on port 1.
            backendURL: fault.manner == .closed ? "http://127.0.0.1:1/" : nil,
            script: fault.script
        )
        for name in ["deauthorize", "data-deletion"] {
            service.backend.forgetRequests()
            let answer = try service.call(name, CallbackService.good())
            #expect(answer.status == fault.status, "\(name)")
            if fault.status == 503 {
                #expect(answer.text.contains(#""code":"callback_not_delivered""#))
                #expect(answer["retry-after"] == "60")
            }
            // The backend may read an attempt after the service gave it up.
            await eventually("each attempt is read") {
                service.backend.requestCount >= fault.attempts
            }
            #expect(service.backend.requestCount == fault.attempts, "\(name)")
            // Every attempt has the same identifier and body.
            #expect(Set(service.backend.requests.map { $0.value(of: "webhook-id") }).count == min(1, fault.attempts))
            #expect(Set(service.backend.requests.map(\.body)).count == min(1, fault.attempts))
        }
        #expect(service.metric("limited_login_webhooks_total{result=\"\(fault.result)\"}") == 2)
        let lines = service.log.withLock { $0 }
        let told = lines.filter { $0.hasPrefix("callback not delivered") }
        #expect(told.count == (fault.status == 503 ? 2 : 0))
        // `printf 218471 | sha256sum`: the log identifies the person only to readers that know the id.
        let hash = "a16eadf35df86bf31b67643469cff09e096fc1823a4d1ad0325462615bfce650"
        #expect(told.allSatisfy { $0.contains(fault.result) && $0.contains(hash) })
        #expect(!lines.contains { $0.contains("218471") })
        await service.stop()
    }

    @Test("An accepted event counts as delivered, even if the answer cannot be read", arguments: unreadableBodies)
    func unreadableBody(fault: Fault) async throws {
        let limits = CallbackService.limits(attemptTime: fault.attemptTime)
        let service = try await CallbackService(limits: limits, script: fault.script)
        let answer = try service.call("data-deletion", CallbackService.good())
        #expect(answer.text.contains(CallbackService.statusURL + "?code="))
        // The answer to a deauthorize callback is shown to no person.
        #expect(try service.call("deauthorize", CallbackService.good()).text == "{}")
        let told = service.log.withLock { $0 }.filter { $0.hasPrefix("answer to a callback not used") }
        #expect(told.count == 1)
        #expect(told.allSatisfy { $0.contains("222") && !$0.contains("218471") })
        await service.stop()
    }

    @Test("A redirect is not followed, so the event is sent to no other server")
    func redirect() async throws {
        let elsewhere = try ScriptedIssuer { _, peer in try peer.answer() }
        let place = elsewhere.url
        for status in [
            "301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect",
        ] {
            let service = try await CallbackService { _, peer in
                try peer.answer(status: status, fields: ["Location: \(place)"])
            }
            #expect(try service.call("deauthorize", CallbackService.good()).status == 503, "\(status)")
            #expect(service.backend.requestCount == 1)
            await service.stop()
        }
        #expect(elsewhere.connectionCount == 0)
        elsewhere.stop()
    }

    private static func request(user: Int) throws -> String {
        let form = FormParameters.encode([("signed_request", try CallbackService.good(user: user))])
        return CallbackService.request("deauthorize", form: form)
    }

    @Test("Deliveries are bounded: a callback beyond the bound is 503 at once, with a log line and a metric")
    func bounded() async throws {
        var limits = CallbackService.limits()
        limits.threadCount = 1
        limits.queueLength = 1
        let service = try await CallbackService(limits: limits) { _, peer in peer.waitUntilClosed() }
        let waiting = try (0..<2).map { _ in try service.connect() }
        waiting[0].send(try Self.request(user: 1))
        await eventually("the backend is asked") { service.backend.requestCount == 1 }
        waiting[1].send(try Self.request(user: 2))
        await eventually("the other waits for the thread") { service.server.counters.parked == 2 }
        #expect(try service.call("deauthorize", CallbackService.good(user: 3)).status == 503)
        #expect((service.metric("limited_login_webhooks_total{result=\"unsent\"}") ?? 0) >= 1)
        #expect(service.log.withLock { $0.contains { $0.contains("too many deliveries are waiting") } })
        // A stop answers the callbacks that wait.
        await service.stop()
        for client in waiting { #expect(client.readResponses(1).first?.status == 503) }
    }

    @Test("While 200 callbacks wait for a hung backend, tokens are judged as usual")
    func hungBackend() async throws {
        let limits = CallbackService.limits()
        let service = try await CallbackService(limits: limits) { _, peer in peer.waitUntilClosed() }
        let waiting = try (1...200).map { user in
            let client = try service.connect()
            client.send(try Self.request(user: user))
            return client
        }
        // Callbacks beyond the threads and their queue are answered and counted at once. None of the others ends while
        // the backend hangs.
        let beyond = 200 - limits.threadCount - limits.queueLength
        await eventually("\(beyond) are not sent") {
            service.metric("limited_login_webhooks_total{result=\"unsent\"}") == beyond
        }
        await eventually("every thread asks") { service.backend.requestCount >= limits.threadCount }
        let token = try Tokens.mint(Tokens.claims())
        let client = try service.connect()
        for _ in 0..<50 { #expect(client.exchange(LiveService.request(token))?.status == 200) }
        // Each thread has sent one request to the backend.
        #expect(service.backend.requestCount == limits.threadCount)
        await service.stop()
        for client in waiting { #expect(client.readResponses(1).first?.status == 503) }
    }

    @Test("A client that leaves costs nothing: its delivery ends by itself")
    func abandoned() async throws {
        let limits = CallbackService.limits(attemptTime: .seconds(1))
        let service = try await CallbackService(limits: limits) { _, peer in peer.waitUntilClosed() }
        let client = try service.connect()
        let form = FormParameters.encode([("signed_request", try CallbackService.good())])
        client.send(CallbackService.request("data-deletion", form: form))
        await eventually("the backend is asked") { service.backend.requestCount >= 1 }
        client.reset()
        await eventually("the delivery ends") {
            service.metric("limited_login_webhooks_total{result=\"timed_out\"}") == 1
        }
        service.backend.setScript { _, peer in try peer.answer("{}") }
        #expect(try service.call("deauthorize", CallbackService.good()).status == 200)
        await service.stop()
    }

    @Test("A flood that repeats one callback on 100 connections is delivered once and harms no genuine callback")
    func flood() async throws {
        let gate = Locked(false)
        let service = try await CallbackService { _, peer in
            while !gate.withLock({ $0 }) { try peer.pause(.milliseconds(5)) }
            try peer.answer("{}")
        }
        let repeated = try Self.request(user: 999)
        func send(_ requests: [String]) throws -> [BlockingClient] {
            try requests.map { request in
                let client = try service.connect()
                client.send(request)
                return client
            }
        }
        let flood = try send(Array(repeating: repeated, count: 100))
        await eventually("all repetitions wait") { service.server.counters.parked == 100 }
        let genuine = try send((1...12).map { try Self.request(user: $0) })
        await eventually("the genuine ones wait") { service.server.counters.parked == 112 }
        gate.withLock { $0 = true }
        for client in flood + genuine { #expect(client.readResponses(1).first?.status == 200) }
        #expect(service.backend.requestCount == 13)
        // A later repetition is answered from memory, even if the backend is gone.
        service.backend.setScript { _, peer in peer.reset() }
        for client in try send(Array(repeating: repeated, count: 100)) {
            #expect(client.readResponses(1).first?.status == 200)
        }
        #expect(service.backend.requestCount == 13)
        #expect(service.metric("limited_login_webhooks_total{result=\"delivered\"}") == 13)
        await service.stop()
    }
}
