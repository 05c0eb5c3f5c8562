import Foundation
import LLHTTP
import LLStandIn
import LLTestSupport
import Testing

@Suite("serve: a real process with a real issuer", .live)
struct ServiceLifeTests {
    @Test("Probes are answered even if clients open more connections than there are descriptors")
    func descriptors() throws {
        let service = try RunningService(shell: "ulimit -n 200")
        var clients: [BlockingClient] = []
        for _ in 0..<250 { clients.append(try BlockingClient(service.address)) }
        for _ in 0..<20 { #expect(try service.get("/livez", admin: true).status == 200) }
        #expect(try service.get("/livez").status == 200)
        withExtendedLifetime(clients) {}
    }

    @Test("An idle connection ends after idle_timeout_seconds; the limit of descriptors is raised to the hard limit")
    func limits() throws {
        let service = try RunningService(nil, ["idle_timeout_seconds": "1"], shell: "ulimit -Sn 200")
        for address in [service.address, service.adminAddress] {
            #expect(try BlockingClient(address).read().end == .endOfStream)
        }
        let limits = try String(contentsOfFile: "/proc/\(service.process.identifier)/limits", encoding: .utf8)
        let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max open files") })
        let numbers = line.split(separator: " ").compactMap { Int($0) }
        #expect(numbers.count == 2 && numbers[0] == numbers[1])
    }

    @Test("SIGTERM stops it with exit code 0; readiness fails during the drain delay")
    func stopping() throws {
        let issuer = try IssuerProcess()
        let service = try RunningService(issuer, ["drain_delay_seconds": "10"])
        let token = try issuer.token()
        service.process.terminate()
        #expect(service.process.waitForError("\"message\":\"stopping\""))
        let unready = try service.get("/readyz")
        #expect(unready.status == 503 && unready.code == "draining")
        #expect(try service.verify(token).status == 200)
        #expect(service.process.waitForExit() == 0)
        #expect(service.process.errorText.contains("\"requests_cut_off\":\"0\""))
    }

    @Test("A second SIGTERM ends it at once")
    func secondSignal() throws {
        let service = try RunningService(nil, ["drain_delay_seconds": "300"])
        service.process.terminate()
        #expect(service.process.waitForError("\"message\":\"stopping\""))
        let began = Date()
        service.process.terminate()
        #expect(service.process.waitForExit() == 143)
        #expect(Date().timeIntervalSince(began) < 30)
    }

    @Test("The beginning of another protocol is named in the answer and in the log")
    func foreignProtocols() throws {
        let service = try RunningService()
        for (count, bytes, name) in [
            (1, "PROXY TCP4 10.0.0.1 10.0.0.2 4000 8080\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n", "PROXY protocol"),
            (2, "\r\n\r\n\0\r\nQUIT\n\u{21}\u{11}\0\u{0c}aaaabbbbcccc", "PROXY protocol"),
            (1, "\u{16}\u{03}\u{01}\u{02}\0\u{01}\0\u{01}\u{7c}\u{03}\u{03}\r\n", "TLS handshake"),
        ] {
            let answer = try service.exchange(bytes)
            #expect(answer.status == 400 && answer.text.contains(name), "\(answer.text)")
            #expect(service.process.waitForErrors(count, of: name), "\(service.process.errorText)")
        }
    }

    @Test("Metrics are served on the administrative listener and tell of requests, fetches and the process")
    func metrics() throws {
        let service = try RunningService(IssuerProcess())
        #expect(try service.verify("x").status == 401)
        let text = try service.get("/metrics", admin: true).text
        #expect(text.contains(#"limited_login_verifications_total{credential="id_token",result="malformed_token"} 1"#))
        #expect(text.contains("jwks_keys 2\n") && text.contains(#"jwks_fetches_total{result="replaced"} 1"#))
        #expect(text.contains(try Regex("process_resident_memory_bytes [1-9]")))
    }

    @Test("Keys that have become too old are no keys in the metrics, and one error line says it")
    func outdatedKeys() throws {
        let issuer = try IssuerProcess()
        let ages = ["jwks_ttl_seconds", "jwks_minimum_ttl_seconds", "jwks_maximum_ttl_seconds"].map { ($0, "1") }
        let service = try RunningService(issuer, Dictionary(ages + [("jwks_max_stale_seconds", "0")]) { $1 })
        issuer.process.end()
        #expect(service.process.waitForError("\"message\":\"the keys are too old\""))
        #expect(try service.get("/metrics", admin: true).text.contains("jwks_keys 0\n"))
        #expect(service.process.errorText.ranges(of: "the keys are too old").count == 1)
    }

    @Test("A seed file lets it serve at once while the issuer cannot be reached")
    func seedFile() throws {
        let (issuer, folder) = (try IssuerProcess(), try ShortFolder())
        let seed = ["jwks_file": "\(folder.path)/seed.json"]
        try RunningService(issuer, seed).stop()
        let second = try RunningService(nil, seed)
        #expect(try second.get("/readyz").status == 200)
        #expect(try second.verify(try issuer.token()).status == 200)
    }

    @Test("Keys are fetched over TLS from a peer that ca_file trusts alone; the log has the reason of a failure")
    func privateAuthority() throws {
        let certificates = try TestCertificates.shared.get()
        let set = TokenMinter.jwkSet([StandInKeys.current])
        for (identity, reason) in [(certificates.good, nil), (certificates.untrusted, "certificate")] {
            let issuer = try ScriptedIssuer(.tls(identity)) { _, peer in
                try peer.answer(fields: ["Content-Type: application/json", "Cache-Control: max-age=600"], set)
            }
            defer { issuer.stop() }
            let service = try RunningService(nil, ["jwks_urls": issuer.url, "ca_file": certificates.authorityFile])
            if let reason {
                #expect(service.process.waitForError("keys could not be fetched"))
                #expect(service.process.errorText.contains(reason))
            } else {
                #expect(try service.waitUntilReady())
            }
        }
    }

    @Test("On a Unix socket curl is served and keeps its connection; the socket's file is removed at the stop")
    func unixSocket() throws {
        let folder = try ShortFolder()
        let path = try folder.socketPath()
        let service = try RunningService(nil, ["listen": "unix:\(path)"])
        #expect(service.listenAddress == .unix(path))
        let url = "http://localhost/livez"
        let words = ["-sS", "--unix-socket", "\(path)", "-w", "%{http_code} %{num_connects} ", url, url]
        let two = try FinishedRun(words, program: "/usr/bin/curl")
        #expect(two.output.contains("200 1 ") && two.output.contains("200 0 "), "\(two.output) \(two.errors)")
        // The administrative listener is still on its own port.
        #expect(try service.get("/livez", admin: true).status == 200)
        service.stop()
        #expect(!FileManager.default.fileExists(atPath: "\(path)"))
    }

    @Test("The service notifies its manager when it is ready, reloads and stops", arguments: [false, true])
    func managerStates(isAbstract: Bool) throws {
        let manager = try NotifySocket(isAbstract: isAbstract)
        let service = try RunningService(nil, ["NOTIFY_SOCKET": manager.name])
        #expect(manager.next() == ["READY=1", "STATUS=Listening on \(service.address)"])
        service.process.signal(SIGHUP)
        let reloading = manager.next()
        #expect(reloading.first == "RELOADING=1")
        let time = try #require(reloading.dropFirst().first)
        #expect(UInt64(time.dropFirst("MONOTONIC_USEC=".count)) ?? 0 > 0, "\(time)")
        #expect(manager.next() == ["READY=1", "STATUS=Configuration reloaded"])
        service.process.terminate()
        let stopping = manager.next()
        // There is no drain delay, so the time is 20 s for requests under way and the log.
        #expect(stopping.first == "STOPPING=1" && stopping.contains("EXTEND_TIMEOUT_USEC=20000000"), "\(stopping)")
        #expect(service.process.waitForExit() == 0)
    }

    @Test("The service shows its manager's watchdog that it is alive, if that asks this process")
    func watchdog() throws {
        let manager = try NotifySocket(isAbstract: true)
        let service = try RunningService(nil, ["NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "200000"])
        #expect(manager.next().first == "READY=1")
        for _ in 0..<3 { #expect(manager.next() == ["WATCHDOG=1"]) }
        service.process.end()
        for (variables, pulse) in [
            ([:], nil), (["WATCHDOG_USEC": "x"], nil), (["WATCHDOG_USEC": "30000000"], .seconds(15)),
            (["WATCHDOG_USEC": "2", "WATCHDOG_PID": "1"], nil),
            (["WATCHDOG_USEC": "2", "WATCHDOG_PID": "\(getpid())"], .microseconds(1)),
        ] as [([String: String], Duration?)] {
            #expect(ServiceManager.pulse(variables) == pulse, "\(variables)")
        }
    }
}

/// The notification socket of a service manager.
private final class NotifySocket {
    /// A path, or an abstract name after `@`.
    let name: String
    private let folder: ShortFolder
    private let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)

    init(isAbstract: Bool) throws {
        folder = try ShortFolder()
        name = (isAbstract ? "@" : "") + "\(folder.path)/notify"
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // `sun_path` has room for 108 bytes, and the names here are shorter.
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: Array(name.utf8)) }
        if isAbstract { address.sun_path.0 = 0 }
        let length = socklen_t(2 + name.utf8.count + (isAbstract ? 0 : 1))
        let bound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe bind(descriptor, $0, length) }
        }
        try #require(bound == 0)
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { _ = close(descriptor) }

    /// The lines of the next message; empty if none comes in time.
    func next() -> [String] {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).split(separator: "\n").map(String.init)
    }
}
