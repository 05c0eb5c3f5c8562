import Foundation
import LLHTTP
import LLTestSupport
import Testing

@Suite("serve and demo: the start", .live)
struct StartTests {
    private static let required = [
        "LIMITED_LOGIN_APP_IDS": RunningService.appID, "LIMITED_LOGIN_JWKS_URLS": "http://127.0.0.1:1/",
        "LIMITED_LOGIN_ADMIN_LISTEN": "127.0.0.1:0", "LIMITED_LOGIN_LOG_FORMAT": "json",
    ]

    @Test("A port that becomes free within five seconds is used; an earlier SIGHUP causes a reload after the start")
    func passingError() throws {
        var holder: Socket? = try Socket.listener(on: .loopback(port: 0), backlog: 1, sharesPort: false)
        let address = "\(try #require(try holder?.localAddress()))"
        let process = try ServiceProcess(["serve", "--listen", address], environment: Self.required)
        #expect(process.waitForError("trying on"))
        process.signal(SIGHUP)
        holder = nil
        #expect(process.waitForError("\"message\":\"listening\""), "\(process.errorText)")
        #expect(process.waitForError("configuration reloaded"), "\(process.errorText)")
        process.end()
    }

    @Test("If several services start at once on one port, exactly one listens")
    func atOnce() throws {
        let port = try FreePort.take()
        let processes = try (0..<3).map { _ in
            try ServiceProcess(["serve", "--listen", "127.0.0.1:\(port)"], environment: Self.required)
        }
        #expect(
            becomesTrue {
                processes.allSatisfy { $0.errorText.contains("listening") || $0.errorText.contains("trying on") }
            }
        )
        // Each service has bound its address, or has failed and logged "trying on".
        #expect(processes.count { $0.errorText.contains("listening") } <= 1)
        #expect(becomesTrue { processes.contains { $0.errorText.contains("listening") } })
        for process in processes where !process.errorText.contains("listening") {
            #expect(process.waitForExit() == 75, "\(process.errorText)")
        }
        #expect(processes.count { $0.errorText.contains("\"message\":\"listening\"") } == 1)
        for process in processes where process.errorText.contains("listening") { process.end() }
    }

    @Test("Too few descriptors are reported before anything listens")
    func descriptors() throws {
        let run = try FinishedRun(
            ["-c", "ulimit -n 40; exec \"$0\" serve --workers 2", ServiceProcess.executable],
            environment: Self.required.merging(["LIMITED_LOGIN_LISTEN": "127.0.0.1:0"]) { $1 },
            program: "/bin/bash"
        )
        #expect(run.exitCode == 78)
        #expect(run.errors.contains("descriptors are needed with 2 workers"), "\(run.errors)")
        #expect(run.errors.split(separator: "\n").count { $0.hasPrefix("limited-login: ") } == 1, "\(run.errors)")
    }

    @Test(
        "If OpenSSL's configuration disables RSA and SHA-256, each command ends with 78 and one sentence",
        arguments: [["serve"], ["verify", "x.y.z"]]
    )
    func withoutAlgorithms(command: [String]) throws {
        let folder = try ShortFolder()
        let text = "openssl_conf=a\n[a]\nalg_section=b\n[b]\ndefault_properties=fips=yes,provider=none\n"
        let file = try folder.write("openssl.cnf", text)
        let run = try FinishedRun(command, environment: Self.required.merging(["OPENSSL_CONF": file]) { $1 })
        #expect(run.exitCode == 78)
        #expect(run.errors.contains("OpenSSL cannot verify RSA signatures"), "\(run.errors)")
        #expect(run.errors.split(separator: "\n").count == 1, "\(run.errors)")
    }

    @Test(
        "OpenSSL stays usable while a program with the libraries exits, after each first use: a fetch may be under way",
        arguments: ["cache", "digest", "mac", "random", "key", "pem", "numbers", "context"]
    )
    func embedding(first: String) throws {
        let program = URL(filePath: ServiceProcess.executable).deletingLastPathComponent()
            .appending(path: "embedding-host").path
        #expect(try ServiceProcess([first], program: program).waitForExit() == 0)
    }
}
