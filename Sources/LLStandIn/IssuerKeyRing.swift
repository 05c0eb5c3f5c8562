internal import LLBytes
internal import LLHTTP
package import LLJOSE
package import LimitedLoginTesting

/// The stand-in issuer's signing keys. As at Facebook, exactly two are published, and the newest signs.
package final class IssuerKeyRing: Sendable {
    /// The two published ones, then the one that is never published once it is made.
    private let minters: Locked<[TokenMinter]>
    /// The device that makes the proofs of `POST /proofs`.
    let device: ProofMinter

    /// Generates the first two keys; takes a few tenths of a second.
    package init() throws(OpenSSLError) {
        device = ProofMinter(key: try Chance.key(.p256))
        minters = Locked([try TokenMinter.make(), try TokenMinter.make()])
    }

    /// The published keys; the first one signs.
    package var published: [TokenMinter] { minters.withLock { Array($0.prefix(2)) } }

    /// The payload of a token that one of the published keys signed; nil for any other.
    func payload(of token: [UInt8]) -> [UInt8]? {
        guard let parts = try? JWSCompactSerialization(splitting: token.span) else { return nil }
        var payload: [UInt8] = []
        var signature: [UInt8] = []
        guard Base64URL.decode(token.span, parts.payload, into: &payload),
            Base64URL.decode(token.span, parts.signature, into: &signature),
            // The signature scheme is deterministic, so an equal second signature verifies the first.
            published.contains(where: { (try? $0.key.signature(for: Array(token[parts.signingInput]))) == signature })
        else { return nil }
        return payload
    }

    /// The keys for the tokens of a catalogue; the last one is never published, and made at the first call.
    package func catalogueMinters() throws(OpenSSLError) -> CatalogueWorkshop.Minters {
        try minters.withLock { minters throws(OpenSSLError) in
            if minters.count == 2 { minters.append(try TokenMinter.make()) }
            return (minters[0], minters[1], minters[2])
        }
    }

    /// Makes a new key the signing one, keeps the previous one published and drops the one before.
    package func rotate() throws(OpenSSLError) {
        let newest = try TokenMinter.make()
        minters.withLock { $0[..<2] = [newest, $0[0]] }
    }
}
