import LLHTTP
import LLJOSE
import LLTestSupport
import LimitedLoginHTTPS
import Testing

@testable import LimitedLoginKeys

@Suite("A JWK Set at a URL", .live)
struct HTTPSJWKSetSourceTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// An issuer that answers by this script, and a source of its keys.
    private func issuer(
        timeout: Duration = .seconds(30),
        _ script: @escaping ScriptedIssuer.Script
    ) throws -> (ScriptedIssuer, HTTPSJWKSetSource) {
        let issuer = try ScriptedIssuer(.tls(certificates.good), script: script)
        var limits = HTTPSClientLimits()
        limits.fetchTimeout = timeout
        let authorities = certificates.authorityFile
        let source = try HTTPSJWKSetSource(url: issuer.url, authoritiesFile: authorities, proxy: .none, limits: limits)
        return (issuer, source)
    }

    @Test(
        "Any other answer than a set is a failure with its status, and with the issuer's Retry-After",
        arguments: [
            ("500 Internal Server Error", "X: y", "the source answered 500", nil),
            ("429 Too Many Requests", "Retry-After: 120", "the source answered 429", 120),
            ("404 Not Found", "X: y", "the source answered 404", nil),
            ("206 Partial Content", "X: y", "the source answered 206", nil),
            ("304 Not Modified", "X: y", "the source answered 304", nil),
            ("204 No Content", "X: y", "the source answered 204", nil),
            ("302 Found", "Location: /keys", "more than 3 in a row", nil),
        ] as [(String, String, String, Int?)]
    )
    func failures(status: String, field: String, sentence: String, seconds: Int?) throws {
        let (issuer, source) = try issuer { _, peer in
            try peer.answer(status: status, fields: [field], "{\"keys\":[]}")
        }
        defer { issuer.stop() }
        let error = #expect(throws: JWKSetSourceError.self) { try source.fetch(validator: nil) }
        #expect(error?.reason.contains(sentence) == true, "\(error?.reason ?? "")")
        #expect(error?.retryAfter == seconds.map { .seconds($0) })
        #expect(OpenSSLError.isQueueEmpty)
    }

    @Test(
        "An entity tag comes with the set and is sent back, and a 304 brings a new time to live; no other text is one",
        arguments: [
            (#"W/"7""#, true), (#""7""#, true), ("\"\(String(repeating: "a", count: 254))\"", true), ("*", false),
            ("\"", false), ("7", false), (#"w/"7""#, false), (#""7", "8""#, false),
            ("\"\(String(repeating: "a", count: 255))\"", false),
        ]
    )
    func entityTag(text: String, isTag: Bool) throws {
        let (issuer, source) = try issuer { request, peer in
            if request.value(of: "if-none-match") == text {
                try peer.answer(status: "304 Not Modified", fields: ["Cache-Control: max-age=900"], "")
            } else {
                try peer.answer(fields: ["ETag: \(text)"], TestKeySet.json(["a"]))
            }
        }
        defer { issuer.stop() }
        let document = JWKSetDocument(bytes: TestKeySet.json(["a"]), validator: isTag ? text : nil)
        #expect(try source.fetch(validator: nil) == .fetched(document))
        let renewed = JWKSetAnswer.notModified(JWKSetFreshness(remaining: .seconds(900)))
        #expect(try source.fetch(validator: document.validator) == (isTag ? renewed : .fetched(document)))
    }

    @Test(
        "Cache-Control and Age give the time to live; one that cannot be read is over",
        arguments: [
            (["Cache-Control: max-age=0"], 0), (["Cache-Control: max-age=315360000"], 315_360_000),
            (["Cache-Control: no-store"], 0), (["Cache-Control: no-cache, max-age=5000"], 0),
            (["Cache-Control: max-age=5000, max-age=4000"], 4000), (["Cache-Control: max-age=abc"], 0),
            (["Cache-Control: max-age=-5"], 0), (["Cache-Control: max-age=99999999999999999999999"], .max),
            (["Cache-Control: max-age"], 0), (["Cache-Control: public"], nil), (["Cache-Control: s-maxage=9"], nil),
            (["Cache-Control: private=\"a, b\" , Max-Age = \"5000\""], 5000), (["Cache-Control: ,,"], nil),
            (["Cache-Control: public, MAX-AGE=\"700\"", "Age: 100"], 600),
            (["Cache-Control: max-age=5000", "Age: 99999999999999999999999"], 0),
            (["Cache-Control: max-age=5000", "Age: x"], 5000), (["Expires: 0"], nil), ([], nil),
        ] as [([String], Int?)]
    )
    func freshness(fields: [String], seconds: Int?) throws {
        let (issuer, source) = try issuer { _, peer in try peer.answer(fields: fields, TestKeySet.json(["a"])) }
        defer { issuer.stop() }
        let freshness = JWKSetFreshness(remaining: seconds.map { .seconds($0) })
        let document = JWKSetDocument(bytes: TestKeySet.json(["a"]), freshness: freshness)
        #expect(try source.fetch(validator: nil) == .fetched(document))
    }

    @Test("A stop ends a hanging fetch at once")
    func stop() async throws {
        let asked = AsyncStream<Void>.makeStream()
        let (issuer, source) = try issuer(timeout: .seconds(600)) { _, peer in
            asked.continuation.yield()
            peer.waitUntilClosed()
        }
        defer { issuer.stop() }
        let fixture = try CacheFixture([source])
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
    func badURL(url: String) { #expect(throws: JWKSetSourceError.self) { try HTTPSJWKSetSource(url: url) } }

    @Test("A missing trust file is refused when the source is made")
    func badTrustFile() {
        let error = #expect(throws: JWKSetSourceError.self) {
            try HTTPSJWKSetSource(url: "https://localhost/", authoritiesFile: "/nonexistent.pem")
        }
        #expect(error?.reason.contains("/nonexistent.pem") == true)
    }
}
