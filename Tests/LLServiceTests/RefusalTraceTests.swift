import Foundation
import LLHTTP
import LLTestSupport
import LimitedLogin
import Logging
import Testing

@testable import LLService

@Suite("A refusal leaves a trace", .live)
struct RefusalTraceTests {
    @Test("At most ten lines are written per second, then one line with the number of the others")
    func pace() {
        var pace = RefusalPace()
        let start = MonotonicInstant(nanoseconds: 5_000_000_000)
        let admitted = (0..<500).count { millisecond in
            let now = start + .milliseconds(millisecond)
            return pace.takeUntold(at: now) == nil && pace.admits(at: now)
        }
        #expect(admitted == 10)
        let told = [999, 1_000, 1_000].map { pace.takeUntold(at: start + .milliseconds($0)) }
        #expect(told == [nil, 490, nil] && pace.untoldCount == 0)
        let isAdmitted = pace.admits(at: start + .seconds(1))
        #expect(isAdmitted)
    }

    @Test("The line has code, request id, caller and route, but neither token nor person")
    func line() async throws {
        let (logger, lines) = lineLogger(.info)
        let keys = try ClientKeysTests.backend()
        do {
            let service = try await InProcessService(clients: keys, gatewayIsEnabled: true, logger: logger)
            let token = try Tokens.mint(Tokens.claims())
            let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
            let fields = [
                "Content-Type: application/json", "X-Api-Key: secret", "X-Request-Id: r-1",
                "traceparent: 00-\(trace)-00f067aa0ba902b7-01",
            ]
            let body = "{\"id_token\":\"\(token)\",\"nonce\":\"other\"}"
            #expect(try service.answer(fields: fields, body: body).status == 401)
            #expect(try service.answer(fields: fields, body: body.replacing("other", with: "n-1")).status == 200)
            // The good login's nonce is short, and that is told too.
            let found = lines.withLock { $0.filter { !$0.contains("so short") } }
            #expect(found.count == 1)
            let line = try #require(found.first)
            let object = try JSONDecoder().decode([String: String].self, from: Data(line.utf8))
            #expect(object["level"] == "info" && object["message"] == "refused")
            #expect(object["code"] == "nonce_mismatch" && object["request_id"] == "r-1")
            #expect(object["trace_id"] == trace && object["caller"] == "backend" && object["route"] == "/verify")
            #expect(!line.contains("2954873201847263") && !line.contains(token.prefix(20)))
            // No refusal is lost in a flood, whatever its speed.
            for _ in 0..<200 { _ = try service.answer("GET", "/auth", fields: []) }
        }
        // The end of the handler writes the number of the refusals without a line.
        let (told, untold) = lines.withLock { lines in
            let objects = lines.compactMap { try? JSONDecoder().decode([String: String].self, from: Data($0.utf8)) }
            let others = objects.filter { $0["message"] == "refusals without a line" }
            let counts = others.compactMap { Int($0["count"] ?? "") }
            return (objects.count { $0["code"] == "missing_token" }, counts.reduce(0, +))
        }
        #expect(told + untold == 200 && told >= 9)
    }

    @Test("The number of the others is written even if no further request comes")
    func silence() async throws {
        let (logger, lines) = lineLogger(.info, .text)
        let service = try await InProcessService(gatewayIsEnabled: true, logger: logger)
        let core = service.core
        let server = try TestServer(workerCount: 1) { _ in ServiceHandler(core: core, listener: .service) }
        let client = try BlockingClient(server.address)
        client.send(String(repeating: "GET /auth HTTP/1.1\r\nHost: a\r\n\r\n", count: 40))
        #expect(client.readResponses(40).count == 40)
        #expect(becomesTrue { lines.withLock { $0.contains { $0.contains("refusals without a line") } } })
    }

    @Test(
        "The beginning of another protocol is named in the answer and in the log",
        arguments: [
            ("PROXY TCP4 10.0.0.1 10.0.0.2 4000 8080\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n", "PROXY protocol"),
            ("\r\n\r\n\0\r\nQUIT\n\u{21}\u{11}\0\u{0c}aaaabbbbcccc", "PROXY protocol"),
            ("\u{16}\u{03}\u{01}\u{02}\0\u{01}\0\u{01}\u{7c}\u{03}\u{03}\r\n", "TLS handshake"),
        ]
    )
    func foreignProtocol(bytes: String, name: String) async throws {
        let (logger, lines) = lineLogger(.info, .text)
        let service = try await InProcessService(logger: logger)
        let driver = ConnectionDriver(
            handler: ServiceHandler(core: service.core, listener: .service),
            sending: bytes
        )
        #expect(driver.statuses == [400] && driver.responses.first?.text.contains(name) == true)
        #expect(lines.withLock { $0.count { $0.contains(name) } } == 1)
    }
}
