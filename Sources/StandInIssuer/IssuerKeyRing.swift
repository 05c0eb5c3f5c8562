package import OpenSSL
internal import Synchronization

/// The stand-in issuer's signing keys: as Facebook's, exactly two are published and the newest signs.
package final class IssuerKeyRing: Sendable {
    /// Number of keys published at any time.
    package static let publishedCount = 2

    private let minters: Mutex<[TokenMinter]>

    /// Generates the first two keys; takes a few tenths of a second.
    package init() throws(OpenSSLError) {
        minters = Mutex([try Self.makeMinter(), try Self.makeMinter()])
    }

    /// The key that signs now.
    package var current: TokenMinter { minters.withLock { $0[0] } }

    /// The published keys, newest first.
    package var published: [TokenMinter] { minters.withLock { $0 } }

    /// Makes a new key the signing one, keeps the last one published and drops the one before.
    ///
    /// - Returns: the new key.
    @discardableResult
    package func rotate() throws(OpenSSLError) -> TokenMinter {
        let newest = try Self.makeMinter()
        minters.withLock { all in
            all.insert(newest, at: 0)
            all.removeLast(all.count - Self.publishedCount)
        }
        return newest
    }

    /// Facebook's key ids are 40 lower-case hexadecimal digits.
    private static func makeMinter() throws(OpenSSLError) -> TokenMinter {
        let digits = Array("0123456789abcdef".utf8)
        let random = try RandomBytes.make(count: 20)
        let text = random.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0x0f)]] }
        return TokenMinter(key: try RSAPrivateKey.generate(), keyID: String(decoding: text, as: UTF8.self))
    }
}
