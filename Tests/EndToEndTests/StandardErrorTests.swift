import Foundation
import LLHTTP
import LLStandIn
import LLTestSupport
import Testing

@Suite("serve: answers, probes and signals work with any standard error", .live)
struct StandardErrorTests {
    /// `serve` on ports that the test chooses, since its log may not be readable.
    private struct Service {
        let process: ServiceProcess
        let address: SocketAddress
        let admin: SocketAddress

        /// - Parameter shell: the shell's command, with `"$0" serve` in it.
        init(_ shell: String, jwksURL: String, _ environment: [String: String] = [:]) throws {
            address = .loopback(port: try FreePort.take())
            admin = .loopback(port: try FreePort.take())
            process = try ServiceProcess(
                ["-c", shell, ServiceProcess.executable],
                environment: [
                    "LIMITED_LOGIN_APP_IDS": RunningService.appID, "LIMITED_LOGIN_JWKS_URLS": jwksURL,
                    "LIMITED_LOGIN_LISTEN": "\(address)", "LIMITED_LOGIN_ADMIN_LISTEN": "\(admin)",
                    "LIMITED_LOGIN_LOG_FORMAT": "json", "LIMITED_LOGIN_AUDIT_LOG": "on",
                ].merging(environment) { $1 },
                program: "/bin/bash"
            )
            // The administrative listener starts first.
            try #require(
                becomesTrue { [true, false].allSatisfy { (try? get("/livez", admin: $0)) == 200 } },
                "\(process.errorText)"
            )
        }

        func exchange(_ request: String, admin isAdmin: Bool = false) throws -> TestResponse? {
            try BlockingClient(isAdmin ? admin : address).exchange(request)
        }

        func get(_ path: String, admin isAdmin: Bool = false) throws -> Int? {
            try exchange("GET \(path) HTTP/1.1\r\nHost: t\r\n\r\n", admin: isAdmin)?.status
        }

        var droppedLines: Int? {
            get throws {
                let text = try exchange("GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n", admin: true)?.text ?? ""
                let line = text.split(separator: "\n").first { $0.hasPrefix("limited_login_log_lines_dropped_total ") }
                return line.flatMap { Int($0.split(separator: " ")[1]) }
            }
        }
    }

    @Test("While nothing reads the log, requests are answered, keys rotate, and the number of lost lines is kept")
    func stoppedReader() throws {
        let issuer = try IssuerProcess()
        let folder = try ShortFolder()
        let fifo = "\(folder.path)/log"
        try #require(unsafe mkfifo(fifo, 0o600) == 0)
        // The test opens both ends, so that neither side waits for the other.
        let reader = unsafe open(fifo, O_RDWR | O_CLOEXEC)
        defer { _ = close(reader) }
        let service = try Service("exec \"$0\" serve 2>\"$LOG\"", jwksURL: issuer.jwksURL, ["LOG": fifo])
        #expect(becomesTrue { (try? service.get("/readyz")) == 200 })
        let count = 8_000
        let client = try BlockingClient(service.address)
        let request = RunningService.request(#"{"id_token":"a.b.c","nonce":"n"}"#)
        for _ in 0..<count / 20 {
            client.send(String(repeating: request, count: 20))
            #expect(client.readResponses(20).count == 20)
        }
        let dropped = try #require(try service.droppedLines)
        #expect(dropped > 0)
        #expect(try service.get("/livez", admin: true) == 200)
        _ = try issuer.post("/rotate")
        let body = "{\"id_token\":\"\(try issuer.token())\",\"nonce\":\"n-1\"}"
        #expect(try service.exchange(RunningService.request(body))?.status == 200)
        // The reader starts again: it gets the lines that were not dropped, and the number of those that were.
        let log = LogReader(reader)
        #expect(becomesTrue { (try? service.droppedLines) == log.told && log.told >= dropped })
        #expect(becomesTrue { log.audits + log.told >= count + 1 })
        service.process.terminate()
        #expect(service.process.waitForExit() == 0)
        #expect(log.audits + log.toldAudits(of: count + 1) == count + 1)
    }

    /// Reads a log to its end, on a thread of its own.
    private final class LogReader: Sendable {
        private let lines = Locked<[String]>([])

        init(_ descriptor: Int32) {
            // The thread reads from a duplicate, since the test closes the original.
            let own = dup(descriptor)
            Thread.detachNewThread { [lines] in
                var rest: [UInt8] = []
                var buffer = [UInt8](repeating: 0, count: 65_536)
                while true {
                    let count = unsafe read(own, &buffer, buffer.count)
                    guard count > 0 else { break }
                    rest += buffer[..<count]
                    guard let end = rest.lastIndex(of: 0x0A) else { continue }
                    let whole = String(decoding: rest[...end], as: UTF8.self).split(separator: "\n").map(String.init)
                    rest.removeFirst(end + 1)
                    lines.withLock { $0 += whole }
                }
            }
        }

        var audits: Int { lines.withLock { $0.count { $0.contains("\"message\":\"audit\"") } } }

        /// The sum of the reported numbers of dropped lines.
        var told: Int {
            lines.withLock { lines in
                lines.filter { $0.contains("log lines dropped") }.compactMap { line in
                    line.range(of: "\"count\":\"").flatMap { Int(line[$0.upperBound...].prefix { $0.isNumber }) }
                }.reduce(0, +)
            }
        }

        /// The number of dropped audit lines. Other lines were dropped too, such as that of the changed key set.
        func toldAudits(of all: Int) -> Int { min(told, all - audits) }
    }

    @Test(
        "With a closed pipe, closed descriptors or a full disk it serves, and SIGTERM drains",
        arguments: [
            "exec \"$0\" serve 2> >(head -n 1 >/dev/null)", "exec \"$0\" serve <&- >&- 2>&-",
            "exec \"$0\" serve 2>/dev/full",
        ]
    )
    func unusable(shell: String) throws {
        let service = try Service(shell, jwksURL: "http://127.0.0.1:1/")
        for _ in 0..<100 {
            let request = RunningService.request(#"{"id_token":"a.b.c","nonce":"n"}"#)
            #expect(try service.exchange(request)?.status ?? 0 >= 400)
        }
        #expect(try service.get("/livez", admin: true) == 200)
        service.process.terminate()
        #expect(service.process.waitForExit() == 0)
    }
}
