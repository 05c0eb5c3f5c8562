import Dispatch
import LLHTTP
import LLJOSE
import LLTestSupport
import LimitedLoginHTTPS
import Testing

@testable import LimitedLoginKeys

@Suite("Against a faulty issuer", .live)
struct IssuerFaultTests {
    let certificates: TestCertificates

    init() throws {
        certificates = try TestCertificates.shared.get()
    }

    func source(port: UInt16, timeout: Duration = .seconds(30)) throws -> HTTPSJWKSetSource {
        var limits = HTTPSClientLimits()
        limits.fetchTimeout = timeout
        return try HTTPSJWKSetSource(
            url: "https://localhost:\(port)/keys",
            authoritiesFile: certificates.authorityFile,
            proxy: .none,
            limits: limits
        )
    }

    /// A source with an issuer that can be exchanged, like the address behind a name.
    func exchangeable(_ first: ScriptedIssuer) throws -> (
        StubSource, @Sendable (ScriptedIssuer, Duration) throws -> Void
    ) {
        let target = Locked(try source(port: first.port))
        let stub = StubSource("issuer") { _, validator throws(JWKSetSourceError) in
            try target.withLock { $0 }.fetch(validator: validator)
        }
        return (
            stub,
            { issuer, timeout in
                let next = try self.source(port: issuer.port, timeout: timeout)
                target.withLock { $0 = next }
            }
        )
    }

    @Test("Good keys survive every fault, which is reported until the issuer answers again", arguments: IssuerFault.all)
    func survives(_ fault: IssuerFault) async throws {
        let good = try ScriptedIssuer(.tls(certificates.good)) { _, peer in
            try peer.answer(TestKeySet.json(["good"]))
        }
        let bad = try ScriptedIssuer(fault.manner?(certificates) ?? .tls(certificates.good), script: fault.script)
        defer {
            good.stop()
            bad.stop()
        }
        let (source, exchange) = try exchangeable(good)
        let fixture = try CacheFixture([source])
        await fixture.start()
        #expect(fixture.keyIDs == ["good"])
        try exchange(bad, fault.timeout)
        await fixture.advance(by: .seconds(3300))
        #expect(fixture.keyIDs == ["good"])
        #expect(fixture.cache.snapshot.isUsable(at: fixture.clock.now))
        let error = try #require(fixture.cache.status.lastError)
        #expect(error.contains(fault.sentence), "\(error)")
        #expect(fixture.cache.status.phase == .backingOff)
        try exchange(good, .seconds(30))
        // One step of the back-off passes; a Retry-After may have lengthened it to its maximum.
        await fixture.advance(by: .seconds(60))
        #expect(fixture.cache.status.phase == .fresh)
        #expect(OpenSSLError.isQueueEmpty)
        fixture.cache.stop()
    }

    @Test("Retry-After is obeyed within the back-off's maximum: no request is sent earlier")
    func retryAfter() async throws {
        let issuer = try ScriptedIssuer(.tls(certificates.good)) { _, peer in
            try peer.answer(status: "429 Too Many Requests", fields: ["Retry-After: 30"], "")
        }
        defer { issuer.stop() }
        let fixture = try CacheFixture([try source(port: issuer.port)])
        await fixture.start()
        #expect(fixture.cache.status.untilNextAttempt == .seconds(30))
        await fixture.advance(by: .seconds(29))
        #expect(issuer.requestCount == 1)
        await fixture.advance(by: .seconds(1))
        #expect(issuer.requestCount == 2)
        fixture.cache.stop()
    }

    @Test("The entity tag is sent back, and a 304 keeps the keys and extends their time")
    func entityTag() async throws {
        let issuer = try ScriptedIssuer(.tls(certificates.good)) { request, peer in
            if request.value(of: "if-none-match") == "W/\"7\"" {
                try peer.answer(status: "304 Not Modified", fields: ["Cache-Control: max-age=900"], "")
            } else {
                try peer.answer(
                    fields: ["ETag: W/\"7\"", "Cache-Control: public, MAX-AGE=\"700\"", "Age: 100"],
                    TestKeySet.json(["a"])
                )
            }
        }
        defer { issuer.stop() }
        let fixture = try CacheFixture([try source(port: issuer.port)])
        await fixture.start()
        #expect(fixture.cache.status.untilExpiry == .seconds(600))
        await fixture.advance(by: .seconds(600))
        #expect(fixture.cache.status.untilExpiry == .seconds(900))
        #expect(fixture.cache.snapshot.keySetVersion == 1)
        #expect(fixture.cache.status.counters.fetchesUnchanged == 1)
        fixture.cache.stop()
    }

    @Test(
        "Every Cache-Control gives a time to live within its limits",
        arguments: [
            (["Cache-Control: max-age=0"], 300), (["Cache-Control: max-age=315360000"], 86_400),
            (["Cache-Control: no-store"], 300), (["Cache-Control: no-cache, max-age=5000"], 300),
            (["Cache-Control: max-age=5000, max-age=4000"], 4000), (["Cache-Control: max-age=abc"], 300),
            (["Cache-Control: max-age=-5"], 300), (["Cache-Control: max-age=99999999999999999999999"], 86_400),
            (["Cache-Control: max-age"], 300), (["Cache-Control: public"], 3600), (["Cache-Control: s-maxage=9"], 3600),
            (["Cache-Control: private=\"a, b\" , Max-Age = \"5000\""], 5000), (["Cache-Control: ,,"], 3600),
            (["Cache-Control: max-age=5000", "Age: 99999999999999999999999"], 300),
            (["Cache-Control: max-age=5000", "Age: x"], 5000), (["Expires: 0"], 3600), ([], 3600),
        ] as [([String], Int)]
    )
    func cacheControl(_ fields: [String], _ seconds: Int) async throws {
        let issuer = try ScriptedIssuer(.tls(certificates.good)) { _, peer in
            try peer.answer(fields: fields, TestKeySet.json(["a"]))
        }
        defer { issuer.stop() }
        let fixture = try CacheFixture([try source(port: issuer.port)])
        await fixture.start()
        #expect(fixture.cache.status.untilExpiry == .seconds(seconds))
        fixture.cache.stop()
    }

    @Test("A stop ends a hanging fetch at once")
    func stop() async throws {
        let asked = AsyncStream<Void>.makeStream()
        let issuer = try ScriptedIssuer(.tls(certificates.good)) { _, peer in
            asked.continuation.yield()
            peer.waitUntilClosed()
        }
        defer { issuer.stop() }
        let fixture = try CacheFixture([try source(port: issuer.port, timeout: .seconds(600))])
        fixture.cache.start()
        for await _ in asked.stream { break }
        fixture.cache.stop()
        await fixture.settle()
        // The stop is no failure, of the fetch or of its source.
        #expect(fixture.cache.status.lastError == nil && fixture.events.allSatisfy { $0.severity != .error })
        #expect(fixture.cache.status.counters.fetchesFailed == 0)
    }

    @Test(
        "A URL that is not https, or http beyond loopback, is refused when the source is made",
        arguments: [
            "http://elsewhere.example/keys", "ftp://localhost/keys", "file:///etc/passwd", "https://user@localhost/",
            "",
        ]
    )
    func badURL(_ url: String) {
        #expect(throws: JWKSetSourceError.self) { try HTTPSJWKSetSource(url: url) }
    }

    @Test("A missing trust file is refused when the source is made")
    func badTrustFile() {
        let error = #expect(throws: JWKSetSourceError.self) {
            try HTTPSJWKSetSource(url: "https://localhost/", authoritiesFile: "/nonexistent.pem")
        }
        #expect(error?.reason.contains("/nonexistent.pem") == true)
    }
}
