package import LLJOSE
package import LLStandIn

/// Keys that are made once for all tests of a process, because making one takes a tenth of a second.
package enum StandInKeys {
    /// The issuer's newest key.
    package static let current = makeMinter()
    /// The issuer's previous key.
    package static let previous = makeMinter()
    /// A key the issuer never published.
    package static let stranger = makeMinter()

    /// The published set: the newest key first, as Facebook orders them.
    package static let set = makeSet([current, previous])

    package static func makeSet(_ minters: [TokenMinter]) -> JWKSet {
        (try? JWKSet(parsing: TokenMinter.jwkSet(minters).span)) ?? JWKSet(keys: [])
    }

    private static func makeMinter() -> TokenMinter {
        guard let minter = try? TokenMinter.make() else { fatalError("no RSA key could be made") }
        return minter
    }
}

extension PrivateKey {
    /// The numbers of an RSA key; empty for any other.
    package var modulus: [UInt8] { if case .rsa(let modulus, _) = numbers { modulus } else { [] } }
    package var publicExponent: [UInt8] { if case .rsa(_, let exponent) = numbers { exponent } else { [] } }

    /// The coordinates of a P-256 key; empty for any other.
    package var coordinates: (x: [UInt8], y: [UInt8]) {
        if case .p256(let x, let y) = numbers { (x, y) } else { ([], []) }
    }
}
