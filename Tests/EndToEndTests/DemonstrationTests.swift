import Foundation
import LLSockets
import LLTestSupport
import Testing

@Suite("demo and the commands of the README", .live)
struct DemonstrationTests {
    private static func demo(_ arguments: [String] = []) throws -> ServiceProcess {
        let process = try ServiceProcess(
            ["demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--issuer-listen", "127.0.0.1:0"]
                + arguments
        )
        try #require(process.waitForOutput("Control-C stops it."), "\(process.errorText)")
        return process
    }

    @Test("The output of demo is short, and every command in it gets the answer in its title")
    func commandsToPaste() throws {
        let demo = try Self.demo()
        defer { demo.end() }
        let lines = demo.outputText.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        #expect(lines.count <= 25)
        #expect(lines.allSatisfy { $0.count <= 110 }, "\(lines.map(\.count))")
        #expect(!demo.outputText.contains("eyJ"), "a token is printed")
        var outcomes: [String] = []
        for (index, line) in lines.enumerated() where line.hasPrefix("# ") {
            let expected = try #require(line.components(separatedBy: " -> ").last)
            let run = try FinishedRun(["-c", lines[index + 1]], program: "/bin/sh")
            #expect(run.exitCode == 0, "\(run.errors)")
            let code = expected.split(separator: " ").last.map(String.init) ?? ""
            if expected.hasPrefix("401 ") {
                #expect(run.output.contains("\"code\":\"\(code)\""), "\(line): \(run.output)")
            } else {
                for member in ["authentication_token", "profile", "birthday", "age_range", "hometown", "friend_ids"] {
                    #expect(run.output.contains("\"\(member)\":"), "\(member): \(run.output)")
                }
            }
            outcomes.append(expected)
        }
        #expect(outcomes == ["200, the Profile", "401 expired", "401 invalid_signature"])
        demo.terminate()
        #expect(demo.waitForExit() == 0)
    }

    @Test("Callers of a demonstration need its client key")
    func callers() throws {
        let demo = try Self.demo()
        defer { demo.end() }
        let line = try #require(demo.outputText.split(separator: "\n").first)
        let service = try #require(line.split(separator: " ").first { $0.hasPrefix("http://") }).dropLast()
        for (path, key, status) in [
            ("/verify", "Accept: */*", 401), ("/verify", "X-Api-Key: other", 401), ("/verify", "X-Api-Key: demo", 415),
            ("/nonces", "X-Api-Key: demo", 200), ("/introspect", "Accept: */*", 401), ("/token", "Accept: */*", 401),
        ] {
            let arguments = [
                "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST", "-H", key, "\(service)\(path)",
            ]
            #expect(try FinishedRun(arguments, program: "/usr/bin/curl").output == "\(status)", "\(path) \(key)")
        }
    }

    @Test("The README's example verifies a token of the stand-in issuer")
    func example() throws {
        let (run, _) = try DocumentedCommands.run("example")
        #expect(run.output.contains("\"name\":\"Jane Doe\""), "\(run.output)\(run.errors)")
        #expect(run.output.contains("\"missing_permissions\":[\"user_birthday\"]"))
        #expect(run.output.contains("\"refresh\":true"), "\(run.output)\(run.errors)")
    }

    @Test("The documented example of a login's life works")
    func documentedLife() throws {
        let (run, statuses) = try DocumentedCommands.run("life", in: "API")
        #expect(
            statuses == ["200", "401", "200", "200", "204", "200", "204", "401", "204", "200", "204"],
            "\(run.output)\(run.errors)"
        )
        #expect(run.output.contains(#""declined":["user_friends"],"expired":[],"missing":["user_birthday"]"#))
        #expect(run.output.contains(#""code":"nonce_used""#))
        #expect(run.output.contains(#""refresh":true"#))
        #expect(run.output.contains(#""granted":[],"declined":[],"expired":[]}"#))
    }

    @Test("The documented examples of refusals are refused with their codes")
    func documentedRefusals() throws {
        let (run, statuses) = try DocumentedCommands.run("refusals", in: "Demonstration")
        #expect(statuses == ["200", "401", "401", "401", "401", "401", "200"], "\(run.output)\(run.errors)")
        let codes = ["expired", "invalid_audience", "nonce_mismatch", "invalid_signature", "unknown_key"]
        for code in codes { #expect(run.output.contains("\"code\":\"\(code)\""), "\(code)") }
        #expect(run.output.contains("\"key_ids\":["))
    }

    @Test(
        "demo uses and prints free ports if its default ones are taken; a port that is named is never replaced"
    )
    func takenPorts() throws {
        // This test holds the ports, unless another program already does.
        let held = [8_080, 8_081, 8_090].map(HeldPort.init)
        defer { withExtendedLifetime(held) {} }
        let demo = try ServiceProcess(["demo"])
        try #require(demo.waitForOutput("Control-C stops it."), "\(demo.errorText)")
        for port in ["8080", "8081", "8090"] {
            #expect(demo.errorText.contains("127.0.0.1:\(port) is taken"), "\(demo.errorText)")
            #expect(!demo.outputText.contains(":\(port)"))
        }
        let lines = demo.outputText.split(separator: "\n").map(String.init)
        let title = try #require(lines.firstIndex { $0.hasPrefix("# a good login") })
        let run = try FinishedRun(["-c", lines[title + 1]], program: "/bin/sh")
        #expect(run.output.contains("\"profile\":"), "\(run.output)\(run.errors)")
        demo.end()
        let named = try FinishedRun(["demo", "--listen", "127.0.0.1:8080"])
        #expect(named.exitCode == 75 && named.errors.contains("127.0.0.1:8080"), "\(named.errors)")
    }

    /// Runs a script in its own network, like that of a container; nil if this machine cannot make one.
    private static func inNetworkOfItsOwn(_ script: String) throws -> FinishedRun? {
        let prepare =
            "ip link set lo up && ip addr add 10.9.9.9/32 dev lo"
        let tool = "/usr/bin/unshare"
        guard FileManager.default.isExecutableFile(atPath: tool),
            try FinishedRun(["-rn", "/bin/sh", "-c", prepare], program: tool).exitCode == 0
        else { return nil }
        return try FinishedRun(["-rn", "/bin/sh", "-c", "\(prepare)\n\(script)"], program: tool)
    }

    @Test("In a container demo listens on all addresses, and answers only the hosts localhost and 127.0.0.1")
    func container() throws {
        let script = """
            \(ServiceProcess.executable) demo --container > "$0.out" &
            until grep -q 'stops it' "$0.out" || ! kill -0 $!; do sleep 0.1; done
            ask() { curl -s -o /dev/null -w '%{http_code} ' "$@"; }
            for host in localhost localhost:18090 127.0.0.1 127.0.0.1:8090 10.9.9.9:8090 evil.example localhost.evil.example; do
              ask -H "Host: $host" http://10.9.9.9:8090/
            done
            for host in localhost:1 127.0.0.1:8080 evil.example; do
              ask -X POST -H "Host: $host" -H 'X-Api-Key: demo' http://10.9.9.9:8080/nonces
            done
            ask http://10.9.9.9:8081/livez
            login=$(sed -n '/^# a good login/{n;p;}' "$0.out")
            sh -c "$login" | grep -o '"profile"'
            kill $!; wait $!
            """
        let folder = try ShortFolder()
        let own = script.replacing("$0", with: "\(folder.path)/demo")
        guard let run = try Self.inNetworkOfItsOwn(own) else { return }
        // The administrative listener answers only inside the container.
        #expect(
            run.output == "200 200 200 200 421 421 421 200 200 421 000 \"profile\"\n",
            "\(run.output)\(run.errors)"
        )
        #expect(run.exitCode == 0)
    }

    @Test("The README's demo and test commands install the packages, then run demo or the tests")
    func commands() throws {
        for (name, end) in [("demo", "swift run limited-login demo"), ("test", "swift test")] {
            let command = try DocumentedCommands.text(name).trimmingCharacters(in: .whitespacesAndNewlines)
            #expect(command.contains("apt-get -qy install libssl-dev"))
            #expect(command.hasSuffix("&& \(end)"))
            #expect(!command.contains("\n"))
        }
    }

    @Test("The README's serve commands start the service with its secret and the key of a caller")
    func serve() throws {
        let folder = try ShortFolder()
        let script = try DocumentedCommands.text("serve")
            .trimmingCharacters(in: .whitespacesAndNewlines)
            .replacing(
                "swift build -c release --product limited-login && PATH=$PWD/.build/release:$PATH",
                with: "cd \(folder.path)"
            )
            .replacing("limited-login serve", with: "exec limited-login serve")
            .replacing("limited-login ", with: "\(ServiceProcess.executable) ")
        let process = try ServiceProcess(
            ["-c", script + " --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --jwks-urls http://127.0.0.1:1/"],
            program: "/bin/bash"
        )
        #expect(process.waitForError("listening"), "\(process.errorText)")
        #expect(process.outputText.hasPrefix("key:  "))
        process.terminate()
        #expect(process.waitForExit() == 0)
    }
}

/// A port that is taken as long as this value lives, by the value or by another program.
private final class HeldPort {
    private let socket: Socket?

    init(_ port: UInt16) { socket = try? Socket.listener(on: .loopback(port: port), backlog: 1, sharesPort: false) }
}
