import Foundation
import LLHTTP
import LLTestSupport
import Testing

@Suite("demo: on this machine and in a container", .live)
struct DemonstrationTests {
    @Test("demo prints little, with free ports in place of taken ones that are not named; callers need its client key")
    func demo() throws {
        // This test holds the ports, unless another program already does.
        let held = [8_080, 8_081, 8_090].map(HeldPort.init)
        defer { withExtendedLifetime(held) {} }
        // The container's image has no folder that can be written to.
        let demo = try ServiceProcess(["demo"], environment: ["TMPDIR": "/nonexistent"])
        try #require(demo.waitForOutput("Control-C stops it."), "\(demo.errorText)")
        defer { demo.end() }
        for port in ["8080", "8081", "8090"] {
            #expect(demo.errorText.contains("127.0.0.1:\(port) is taken"), "\(demo.errorText)")
            #expect(!demo.outputText.contains(":\(port)"))
        }
        let lines = demo.outputText.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count <= 25 && lines.allSatisfy { $0.count <= 110 }, "\(lines.map(\.count))")
        #expect(!demo.outputText.contains("eyJ"), "a token is printed")
        let title = try #require(lines.firstIndex { $0.hasPrefix("# a good login") })
        let run = try FinishedRun(["-c", String(lines[title + 1])], program: "/bin/sh")
        #expect(run.output.contains("\"profile\":"), "\(run.output)\(run.errors)")
        let service = try #require(lines[0].split(separator: " ").first { $0.hasPrefix("http://") }).dropLast()
        for (path, key, status) in [
            ("/verify", "Accept: */*", 401), ("/verify", "X-Api-Key: other", 401), ("/verify", "X-Api-Key: demo", 415),
            ("/nonces", "X-Api-Key: demo", 200), ("/introspect", "Accept: */*", 401), ("/token", "Accept: */*", 401),
        ] {
            let words = ["-sS", "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST", "-H", key, "\(service)\(path)"]
            #expect(try FinishedRun(words, program: "/usr/bin/curl").output == "\(status)", "\(path) \(key)")
        }
        let named = try FinishedRun(["demo", "--listen", "127.0.0.1:8080"])
        #expect(named.exitCode == 75 && named.errors.contains("127.0.0.1:8080"), "\(named.errors)")
    }

    @Test("In a container demo listens on all addresses, and answers only the hosts localhost and 127.0.0.1")
    func container() throws {
        let script = """
            \(ServiceProcess.executable) demo --container > "$OUT" &
            until grep -q 'stops it' "$OUT" || ! kill -0 $!; do sleep 0.1; done
            ask() { curl -s -o /dev/null -w '%{http_code} ' "$@"; }
            for host in localhost localhost:18090 127.0.0.1 127.0.0.1:8090 10.9.9.9:8090 evil.example localhost.evil.example; do
              ask -H "Host: $host" http://10.9.9.9:8090/
            done
            for host in localhost:1 127.0.0.1:8080 evil.example; do
              ask -X POST -H "Host: $host" -H 'X-Api-Key: demo' http://10.9.9.9:8080/nonces
            done
            ask http://10.9.9.9:8081/livez
            login=$(sed -n '/^# a good login/{n;p;}' "$OUT")
            sh -c "$login" | grep -o '"profile"'
            kill $!; wait $!
            """
        let folder = try ShortFolder()
        // A network of its own, like that of a container; not every machine can make one.
        let tool = "/usr/bin/unshare"
        let prepare = "ip link set lo up && ip addr add 10.9.9.9/32 dev lo"
        func runs(_ script: String) throws -> FinishedRun {
            let environment = ["OUT": "\(folder.path)/demo"]
            return try FinishedRun(["-rn", "/bin/sh", "-c", script], environment: environment, program: tool)
        }
        guard FileManager.default.isExecutableFile(atPath: tool), try runs(prepare).exitCode == 0 else { return }
        let run = try runs("\(prepare)\n\(script)")
        // The administrative listener answers only inside the container.
        #expect(
            run.output == "200 200 200 200 421 421 421 200 200 421 000 \"profile\"\n",
            "\(run.output)\(run.errors)"
        )
        #expect(run.exitCode == 0)
    }
}

/// A port that is taken as long as this value lives, by the value or by another program.
private final class HeldPort {
    private let socket: Socket?

    init(_ port: UInt16) { socket = try? Socket.listener(on: .loopback(port: port), backlog: 1, sharesPort: false) }
}
