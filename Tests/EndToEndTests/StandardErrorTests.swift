import Foundation
import LLHTTP
import LLTestSupport
import Testing

@Suite("serve: answers, probes and signals work with any standard error", .live)
struct StandardErrorTests {
    /// `serve` on ports that the test chooses, since its log may not be readable.
    private struct Service {
        let process: ServiceProcess
        let address = SocketAddress.loopback(port: freePort())
        let admin = SocketAddress.loopback(port: freePort())

        private static func freePort() -> UInt16 { (try? FreePort.take()) ?? 0 }

        /// - Parameter shell: the shell's command, with `"$0" serve` in it.
        init(_ shell: String, jwksURL: String, _ environment: [String: String] = [:]) throws {
            process = try ServiceProcess(
                ["-c", shell, ServiceProcess.executable],
                environment: [
                    "app_ids": RunningService.appID, "jwks_urls": jwksURL, "listen": "\(address)",
                    "admin_listen": "\(admin)", "log_format": "json", "audit_log": "on",
                ].merging(environment) { $1 },
                program: "/bin/bash"
            )
            // The administrative listener starts first.
            try #require(becomesTrue { (try? get("/livez")?.status) == 200 }, "\(process.errorText)")
        }

        func exchange(_ request: String) throws -> TestResponse? { try BlockingClient(address).exchange(request) }

        func get(_ path: String, admin isAdmin: Bool = false) throws -> TestResponse? {
            try BlockingClient(isAdmin ? admin : address).exchange("GET \(path) HTTP/1.1\r\nHost: t\r\n\r\n")
        }
    }

    @Test("While nothing reads the log, requests are answered and keys rotate; the next reader is told of the loss")
    func stoppedReader() throws {
        let issuer = try IssuerProcess()
        let folder = try ShortFolder()
        let fifo = "\(folder.path)/log"
        try #require(unsafe mkfifo(fifo, 0o600) == 0)
        // The test opens both ends, so that neither side waits for the other.
        let reader = unsafe open(fifo, O_RDWR | O_CLOEXEC | O_NONBLOCK)
        defer { _ = close(reader) }
        let service = try Service("exec \"$0\" serve 2>\"$LOG\"", jwksURL: issuer.jwksURL, ["LOG": fifo])
        #expect(becomesTrue { (try? service.get("/readyz")?.status) == 200 })
        let client = try BlockingClient(service.address)
        let request = RunningService.request(#"{"id_token":"a.b.c","nonce":"n"}"#)
        for _ in 0..<400 {
            client.send(String(repeating: request, count: 20))
            #expect(client.readResponses(20).count == 20)
        }
        let metrics = try #require(try service.get("/metrics", admin: true)).text
        #expect(metrics.contains(try Regex("limited_login_log_lines_dropped_total [1-9]")))
        _ = try issuer.post("/rotate")
        #expect(try service.exchange(RunningService.login(issuer.token()))?.status == 200)
        #expect(
            becomesTrue {
                var bytes = [UInt8](repeating: 0, count: 65_536)
                let count = unsafe read(reader, &bytes, bytes.count)
                // A write of the log ends with a line.
                return bytes.prefix(max(0, count)).contains("log lines dropped".utf8)
            }
        )
        service.process.terminate()
        #expect(service.process.waitForExit() == 0)
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
        let request = RunningService.request(#"{"id_token":"a.b.c","nonce":"n"}"#)
        for _ in 0..<100 { #expect(try service.exchange(request)?.status ?? 0 >= 400) }
        #expect(try service.get("/livez", admin: true)?.status == 200)
        service.process.terminate()
        #expect(service.process.waitForExit() == 0)
    }
}
