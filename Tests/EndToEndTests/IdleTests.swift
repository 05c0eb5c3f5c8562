import Foundation
import LLTestSupport
import Testing

@Suite(
    "serve: a process with nothing to do",
    .live,
    .enabled(if: !Sanitizer.isActive, "a sanitizer has threads of its own that wake")
)
struct IdleTests {
    /// The context switch counts of the process's threads, by thread id.
    private func switches(_ process: ServiceProcess) throws -> [String: String] {
        let folder = "/proc/\(process.identifier)/task"
        var all: [String: String] = [:]
        for thread in try FileManager.default.contentsOfDirectory(atPath: folder) {
            // A thread that ended between the two calls is left out.
            let status = try? String(contentsOfFile: "\(folder)/\(thread)/status", encoding: .utf8)
            all[thread] = status?.split(separator: "\n").filter { $0.contains("ctxt_switches") }.joined()
        }
        return all
    }

    /// True if no thread of the process wakes for three seconds, within half a minute.
    private func fallsAsleep(_ process: ServiceProcess) async throws -> Bool {
        for _ in 0..<10 {
            let before = try switches(process)
            // The sleep waits for no event; it measures a quiet time.
            try await Task.sleep(for: .seconds(3))
            if try switches(process) == before { return true }
        }
        return false
    }

    @Test("No thread wakes: after the start, after work, after an unknown key and a reload")
    func sleeps() async throws {
        let folder = try ShortFolder()
        let secrets = try folder.write("secrets", "\(RunningService.appID) 0123456789abcdef0123456789abcdef")
        let issuer = try IssuerProcess()
        let service = try RunningService(issuer, ["app_secrets_file": secrets, "watch_files": "enabled"])
        #expect(try await fallsAsleep(service.process))
        #expect(try service.verify(try issuer.token()).status == 200)
        _ = try issuer.post("/rotate")
        #expect(try service.verify(try issuer.token()).status == 200)
        _ = try service.get("/metrics", admin: true)
        service.process.signal(SIGHUP)
        #expect(service.process.waitForError("configuration reloaded"))
        let client = try BlockingClient(service.address)
        #expect(client.exchange("GET /livez HTTP/1.1\r\nHost: t\r\n\r\n")?.status == 200)
        #expect(try await fallsAsleep(service.process))
        #expect(client.exchange("GET /livez HTTP/1.1\r\nHost: t\r\n\r\n")?.status == 200)
        #expect(try await fallsAsleep(issuer.process))
        service.stop()
    }
}
