import Foundation
import LLHTTP
import LLTestSupport
import Testing

@Suite("serve: the start", .live)
struct StartTests {
    private static let required = [
        "app_ids": RunningService.appID, "jwks_urls": "http://127.0.0.1:1/", "admin_listen": "127.0.0.1:0",
        "log_format": "json",
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
        func listening() -> [ServiceProcess] { processes.filter { $0.errorText.contains("\"listening\"") } }
        // The others give up after five seconds.
        #expect(becomesTrue { processes.count { $0.errorText.contains("stop the program") } == 2 })
        let winners = listening()
        #expect(winners.count == 1)
        for process in processes where !winners.contains(where: { $0 === process }) {
            #expect(process.waitForExit() == 75, "\(process.errorText)")
        }
        for process in winners { process.end() }
    }

    @Test("Too few descriptors are reported before anything listens")
    func descriptors() throws {
        let run = try FinishedRun(
            ["-c", "ulimit -n 40; exec \"$0\" serve --workers 2 --listen 127.0.0.1:0", ServiceProcess.executable],
            environment: Self.required,
            program: "/bin/bash"
        )
        #expect(run.exitCode == 78 && run.errors.contains("descriptors are needed with 2 workers"), "\(run.errors)")
        #expect(run.errors.split(separator: "\n").count { $0.hasPrefix("limited-login: ") } == 1, "\(run.errors)")
    }

    @Test("If OpenSSL's configuration disables RSA and SHA-256, each command ends with 78 and one sentence")
    func withoutAlgorithms() throws {
        let folder = try ShortFolder()
        let text = "openssl_conf=a\n[a]\nalg_section=b\n[b]\ndefault_properties=fips=yes,provider=none\n"
        let broken = ["OPENSSL_CONF": try folder.write("openssl.cnf", text)]
        for command in [["serve"], ["verify", "x.y.z"]] {
            let run = try FinishedRun(command, environment: Self.required.merging(broken) { $1 })
            #expect(run.exitCode == 78 && run.errors.contains("OpenSSL cannot verify RSA signatures"), "\(run.errors)")
            #expect(run.errors.split(separator: "\n").count == 1, "\(run.errors)")
        }
    }

    @Test("OpenSSL stays usable while a program with the libraries exits, after each first use of it")
    func embedding() throws {
        let folder = URL(filePath: ServiceProcess.executable).deletingLastPathComponent()
        let program = folder.appending(path: "embedding-host").path
        for first in ["cache", "digest", "mac", "random", "key", "pem", "numbers", "context"] {
            #expect(try ServiceProcess([first], program: program).waitForExit() == 0, "\(first)")
        }
    }
}
