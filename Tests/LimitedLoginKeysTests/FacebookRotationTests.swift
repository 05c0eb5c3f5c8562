import LLHTTPClient
import LLJOSE
import LLTestSupport
import LimitedLoginHTTPS
import Testing

@testable import LimitedLoginKeys

@Suite("Facebook's own key sets", .live, VectorFolder.needs("facebook/jwks-snapshots/2024-10-01.json"))
struct FacebookRotationTests {
    @Test("Five consecutive sets are four rotations: each time one key comes, one goes and one stays")
    func rotations() async throws {
        let files = ["2024-06-05", "2024-07-02", "2024-08-02", "2024-09-02", "2024-10-01"]
        let sets = try files.map { try VectorFolder.bytes("facebook/jwks-snapshots/\($0).json") }
        let certificates = try TestCertificates.shared.get()
        let issuer = try ScriptedIssuer(.tls(certificates.good)) { request, peer in
            try peer.answer(fields: ["Content-Type: application/json"], sets[min(request.number, sets.count) - 1])
        }
        defer { issuer.stop() }
        var limits = HTTPSClientLimits()
        limits.fetchTimeout = .seconds(300)
        let source = try HTTPSJWKSetSource(
            url: issuer.url,
            authoritiesFile: certificates.authorityFile,
            proxy: .none,
            limits: limits
        )
        let fixture = try CacheFixture([source])
        await fixture.start()
        var newest = [try #require(fixture.keyIDs.first)]
        for version in 2...5 {
            let before = fixture.keyIDs
            // A token names the new key before it was fetched, so the cache fetches it.
            let set = try JSONWebKeySet(parsing: String(decoding: sets[version - 1], as: UTF8.self))
            let keyID = try #require(set.keys.first?.keyID)
            #expect(try await fixture.cache.keySet(containing: keyID).key(withID: keyID) != nil)
            #expect(fixture.cache.snapshot.keySetVersion == UInt64(version))
            #expect(fixture.keyIDs == [keyID, before[0]])
            #expect(fixture.cache.snapshot.keySet.key(withID: before[1]) == nil)
            #expect(
                fixture.events.contains(
                    .keySetChanged(source: source.name, added: [keyID], removed: [before[1]], replaced: [])
                )
            )
            newest.append(keyID)
            fixture.clock.advance(by: .seconds(31))
        }
        #expect(Set(newest).count == 5)
        #expect(issuer.requestCount == 5)
        #expect(fixture.cache.status.keys.allSatisfy { $0.bits == 2048 && $0.thumbprint.utf8.count == 43 })
        fixture.cache.stop()
    }
}
