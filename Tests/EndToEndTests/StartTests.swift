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

    @Test("A taken address is tried for five seconds; then the error names its flag, with a temporary exit code")
    func takenAddress() throws {
        var holder: Socket? = try Socket.listener(on: .loopback(port: 0), backlog: 1, sharesPort: false)
        let taken = "\(try #require(try holder?.localAddress()))"
        for (flag, address) in [("--admin-listen", taken), ("--listen", "192.0.2.1:8080")] {
            let other = flag == "--listen" ? "--admin-listen" : "--listen"
            let run = try FinishedRun(["serve", flag, address, other, "127.0.0.1:0"], environment: Self.required)
            #expect(run.exitCode == 75 && run.errors.ranges(of: "trying on").count == 1, "\(run.errors)")
            let told = try #require(run.errors.split(separator: "\n").last)
            #expect(told.contains(" \(address)") && told.hasSuffix("choose another address with \(flag)"), "\(told)")
        }
        let free = ["--listen", "--admin-listen"].flatMap { [$0, "127.0.0.1:0"] }
        let demo = try FinishedRun(["demo", "--issuer-listen", taken] + free)
        #expect(demo.exitCode == 75 && demo.errors.contains("choose another address with --issuer-listen\n"))

        // The port becomes free, and the reload of an earlier SIGHUP follows the start.
        let process = try ServiceProcess(["serve", "--listen", taken], environment: Self.required)
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
