import Foundation
import LLTestSupport
import Testing

@Suite("serve: reload at SIGHUP", .live)
struct ReloadTests {
    /// A configuration file of a test.
    private final class File {
        let path = FileManager.default.temporaryDirectory.appending(path: "reload-\(UUID().uuidString).json").path

        func write(_ text: String) throws { try Data(text.utf8).write(to: URL(filePath: path), options: .atomic) }

        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    @Test("A good file takes effect, a bad one is refused with its reason, and no connection is dropped")
    func reload() throws {
        let issuer = try IssuerProcess()
        defer { issuer.process.end() }
        let clients = File()
        let file = File()
        let own = "\"app_ids\": [\"\(RunningService.appID)\"]"
        try file.write("{\(own)}")
        let service = try RunningService(
            jwksURL: issuer.jwksURL,
            environment: ["LIMITED_LOGIN_CONFIG": file.path],
            withAppID: false
        )
        #expect(try service.waitUntilReady())
        let client = try BlockingClient(service.address)
        let request = RunningService.request("{\"id_token\":\"\(try issuer.token())\",\"nonce\":\"n-1\"}")
        #expect(client.exchange(request)?.status == 200)

        func hup(_ text: String, expecting message: String, count: Int) throws {
            try file.write(text)
            service.process.signal(SIGHUP)
            #expect(service.process.waitForErrors(count, of: message), "\(service.process.errorText)")
        }

        try hup("{\"app_ids\": [\"42\"]}", expecting: "\"configuration reloaded\"", count: 1)
        #expect(client.exchange(request)?.code == "invalid_audience")
        try hup("{\"app_ids\": ", expecting: "not valid JSON", count: 1)
        #expect(client.exchange(request)?.code == "invalid_audience")
        try hup("{\(own), \"workers\": 7}", expecting: "a changed workers takes effect with a restart", count: 1)
        #expect(client.exchange(request)?.code == "invalid_audience")
        try hup("{\(own)}", expecting: "\"configuration reloaded\"", count: 2)
        #expect(client.exchange(request)?.status == 200)

        let gateway = "GET /auth HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(try issuer.token())\r\n\r\n"
        #expect(client.exchange(gateway)?.status == 404)
        try hup("{\(own), \"gateway\": \"enabled\"}", expecting: "\"configuration reloaded\"", count: 3)
        #expect(client.exchange(gateway)?.status == 200)
        #expect(!service.process.errorText.contains("less strict"))
        try hup(
            "{\(own), \"gateway\": \"enabled\", \"binding\": \"optional\"}",
            expecting: "\"configuration reloaded\"",
            count: 4
        )
        #expect(service.process.errorText.contains(#""new":"optional","old":"required","setting":"binding""#))

        let made = try FinishedRun(["client-key", "new", "backend"]).output.split(separator: "\n").map(String.init)
        try clients.write(String(try #require(made.last).dropFirst("line: ".count)) + "\n")
        try hup(
            "{\(own), \"client_keys_file\": \"\(clients.path)\"}",
            expecting: "\"configuration reloaded\"",
            count: 5
        )
        #expect(client.exchange(request)?.code == "unauthorized_client")
        let key = try #require(made.first).dropFirst("key:  ".count)
        let authorized = request.replacing("Host: test\r\n", with: "Host: test\r\nAuthorization: Bearer \(key)\r\n")
        #expect(client.exchange(authorized)?.status == 200)
        service.process.terminate()
        #expect(service.process.waitForExit() == 0)
        #expect(!service.process.errorText.contains(key))
    }

    @Test("A file that was read at the start and is missing at a reload loosens nothing, default or named")
    func lostFile() throws {
        let issuer = try IssuerProcess()
        defer { issuer.process.end() }
        let folder = FileManager.default.temporaryDirectory.appending(path: "reload-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "config/limited-login.json")
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        for environment in [[:], ["LIMITED_LOGIN_CONFIG": file.path]] {
            try Data(#"{"replay": "reject"}"#.utf8).write(to: file)
            let service = try RunningService(
                jwksURL: issuer.jwksURL,
                environment: environment,
                shell: "cd \(folder.path)"
            )
            #expect(try service.waitUntilReady())
            let client = try BlockingClient(service.address)
            let request = RunningService.request("{\"id_token\":\"\(try issuer.token())\",\"nonce\":\"n-1\"}")
            #expect(client.exchange(request)?.status == 200)
            #expect(client.exchange(request)?.code == "token_replayed")
            try FileManager.default.removeItem(at: file)
            service.process.signal(SIGHUP)
            #expect(service.process.waitForError("config/limited-login.json: the file cannot be read"))
            #expect(client.exchange(request)?.code == "token_replayed")
        }
    }

    @Test("A file that was read by a reload and is missing at the next loosens nothing")
    func lostLater() throws {
        let issuer = try IssuerProcess()
        defer { issuer.process.end() }
        let folder = try ShortFolder()
        let file = URL(filePath: "\(folder.path)/config/limited-login.json")
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        let service = try RunningService(jwksURL: issuer.jwksURL, environment: [:], shell: "cd \(folder.path)")
        #expect(try service.waitUntilReady())
        try Data(#"{"gateway": "disabled"}"#.utf8).write(to: file)
        service.process.signal(SIGHUP)
        #expect(service.process.waitForError("configuration reloaded"))
        try FileManager.default.removeItem(at: file)
        service.process.signal(SIGHUP)
        #expect(service.process.waitForError("config/limited-login.json: the file cannot be read"))
    }
}
