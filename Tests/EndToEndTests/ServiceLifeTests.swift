import Foundation
import LLHTTP
import LLStandIn
import LLTestSupport
import Testing

@Suite("serve: a real process with a real issuer", .live)
struct ServiceLifeTests {
    @Test("The soft limit of descriptors is raised, probes are answered beyond the hard one, too few end the start")
    func descriptors() throws {
        let service = try RunningService(shell: "ulimit -Sn 100; ulimit -Hn 200")
        let limits = try String(contentsOfFile: "/proc/\(service.process.identifier)/limits", encoding: .utf8)
        let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max open files") })
        #expect(line.split(separator: " ").compactMap { Int($0) } == [200, 200])
        var clients: [BlockingClient] = []
        for _ in 0..<250 { clients.append(try BlockingClient(service.address)) }
        for _ in 0..<20 { #expect(try service.get("/livez", admin: true).status == 200) }
        #expect(try service.get("/livez").status == 200)
        withExtendedLifetime(clients) {}
        let run = try FinishedRun(
            ["-c", "ulimit -n 40; exec \"$0\" serve --workers 2", ServiceProcess.executable],
            environment: ["app_ids": RunningService.appID, "listen": "127.0.0.1:0", "admin_listen": "127.0.0.1:0"],
            program: "/bin/sh"
        )
        #expect(run.exitCode == 78 && run.errors.contains("descriptors are needed with 2 workers"), "\(run.errors)")
        #expect(run.errors.split(separator: "\n").count { $0.hasPrefix("limited-login: ") } == 1, "\(run.errors)")
    }

    @Test("An idle connection of either listener ends after idle_timeout_seconds")
    func idle() throws {
        let service = try RunningService(nil, ["idle_timeout_seconds": "1"])
        for address in [service.address, service.adminAddress] {
            #expect(try BlockingClient(address).read().end == .endOfStream)
        }
    }

    @Test("At SIGTERM readiness fails, requests are answered and the exit code is 0; a second one ends it at once")
    func stopping() throws {
        let issuer = try IssuerProcess()
        let token = try issuer.token()
        let service = try RunningService(issuer, ["drain_delay_seconds": "10"])
        let other = try RunningService(nil, ["drain_delay_seconds": "300"])
        for process in [other.process, service.process] {
            process.terminate()
            #expect(process.waitForError("\"message\":\"stopping\""))
        }
        let unready = try service.get("/readyz")
        #expect(unready.status == 503 && unready.code == "draining")
        #expect(try service.verify(token).status == 200)
        other.process.terminate()
        #expect(other.process.waitForExit() == 143)
        #expect(service.process.waitForExit() == 0)
        #expect(service.process.errorText.contains("\"requests_cut_off\":\"0\""))
    }

    @Test("Metrics tell of requests, fetches and the process, and of keys until they are too old")
    func metrics() throws {
        let issuer = try IssuerProcess()
        let ages = ["jwks_ttl_seconds", "jwks_minimum_ttl_seconds", "jwks_maximum_ttl_seconds"].map { ($0, "1") }
        let service = try RunningService(issuer, Dictionary(ages + [("jwks_max_stale_seconds", "0")]) { $1 })
        func metrics() throws -> String { try service.get("/metrics", admin: true).text }
        #expect(try service.verify("x").status == 401)
        let text = try metrics()
        #expect(text.contains(#"limited_login_verifications_total{credential="id_token",result="malformed_token"} 1"#))
        #expect(text.contains(try Regex(#"jwks_fetches_total\{result="replaced"\} [1-9]"#)))
        #expect(text.contains(try Regex("process_resident_memory_bytes [1-9]")))
        #expect(try becomesTrue { try metrics().contains("jwks_keys 2\n") })
        issuer.process.end()
        #expect(service.process.waitForError("\"message\":\"the keys are too old\""))
        #expect(try becomesTrue { try metrics().contains("jwks_keys 0\n") })
    }

    @Test("Keys come over TLS from a peer that ca_file trusts alone; in an outage the seed file's keys serve at once")
    func keySources() throws {
        let (certificates, folder) = (try TestCertificates.shared.get(), try ShortFolder())
        let set = TokenMinter.jwkSet([StandInKeys.current])
        let now = WallClock.unixSeconds()
        let claims = MintedClaims(audience: RunningService.appID, subject: "7", nonce: "n-1", issuedAt: now)
        for (identity, reason) in [(certificates.good, nil), (certificates.untrusted, "certificate")] {
            let issuer = try ScriptedIssuer(.tls(identity)) { _, peer in
                try peer.answer(fields: ["Content-Type: application/json", "Cache-Control: max-age=600"], set)
            }
            defer { issuer.stop() }
            let service = try RunningService(
                nil,
                [
                    "jwks_urls": issuer.url, "ca_file": certificates.authorityFile,
                    "jwks_file": "\(folder.path)/seed.json",
                ]
            )
            if let reason {
                #expect(try service.get("/readyz").status == 200)
                #expect(service.process.waitForError("keys could not be fetched"))
                #expect(service.process.errorText.contains(reason))
            } else {
                #expect(try service.waitUntilReady())
                let metrics = try service.get("/metrics", admin: true).text
                #expect(metrics.contains("jwks_fetches_total{result=\"replaced\"} 1\n"))
                #expect(metrics.contains("jwks_keys 1\n"))
            }
            #expect(try service.verify(StandInKeys.current.mint(claims)).status == 200)
            service.stop()
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

    @Test(
        "The service tells its manager when it is ready, reloads and stops, and meanwhile that it is alive",
        arguments: [false, true]
    )
    func manager(isAbstract: Bool) throws {
        let manager = try NotifySocket(isAbstract: isAbstract)
        // A manager that asks for no sign of life gets none.
        let watchdog = isAbstract ? ["WATCHDOG_USEC": "200000"] : [:]
        let service = try RunningService(nil, ["NOTIFY_SOCKET": manager.name].merging(watchdog) { $1 })
        #expect(manager.receive() == ["READY=1", "STATUS=Listening on \(service.address)"])
        if isAbstract { for _ in 0..<3 { #expect(manager.receive() == ["WATCHDOG=1"]) } }
        service.process.signal(SIGHUP)
        let next = isAbstract ? manager.next : manager.receive
        let reloading = next()
        #expect(reloading.first == "RELOADING=1")
        let time = try #require(reloading.dropFirst().first)
        #expect(UInt64(time.dropFirst("MONOTONIC_USEC=".count)) ?? 0 > 0, "\(time)")
        #expect(next() == ["READY=1", "STATUS=Configuration reloaded"])
        service.process.terminate()
        let stopping = next()
        // There is no drain delay, so the time is 20 s for requests under way and the log.
        #expect(stopping.first == "STOPPING=1" && stopping.contains("EXTEND_TIMEOUT_USEC=20000000"), "\(stopping)")
        #expect(service.process.waitForExit() == 0)
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
        var limit = timeval(tv_sec: Int(patienceOfTests.components.seconds), tv_usec: 0)
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { _ = close(descriptor) }

    /// The lines of the next message that is no sign of life.
    func next() -> [String] {
        let deadline = MonotonicClock.now() + patienceOfTests
        while MonotonicClock.now() < deadline {
            let lines = receive()
            if lines != ["WATCHDOG=1"] { return lines }
        }
        return []
    }

    /// The lines of the next message; empty if none comes in time.
    func receive() -> [String] {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).split(separator: "\n").map(String.init)
    }
}
