import Glibc
import LLHTTP
import LLJOSE
import LimitedLoginKeys

/// A program that embeds the libraries and ignores OpenSSL: it exits while another thread could still use OpenSSL.
///
/// Usage: `embedding-host cache|digest|mac|random|key|pem|numbers|context`. The argument is the first use of OpenSSL.
/// The exit code is 0 if OpenSSL still works after any `atexit` handlers of OpenSSL, else 1.
@main
struct EmbeddingHost {
    static func main() throws {
        // Registered before the first use of OpenSSL, so it runs after any handlers of OpenSSL (atexit(3)).
        guard atexit({ _exit((try? SHA256.digest(of: [UInt8]().span)) == nil ? 1 : 0) }) == 0 else { exit(2) }
        switch CommandLine.arguments.dropFirst().first {
        case "cache": _ = try JWKSetCache(sources: [FileJWKSetSource(path: "/nonexistent")])
        case "digest": break
        case "mac": _ = try HMACSHA256.authenticationCode(for: [UInt8]().span, key: [1].span)
        case "random": _ = try RandomBytes.make(count: 1)
        case "key": _ = try PrivateKey(.p256)
        case "pem": _ = try? PrivateKey(pem: [])
        case "numbers": _ = try? PublicKey(.rsa(modulus: [UInt8](repeating: 0xFF, count: 256), exponent: [3]))
        case "context": _ = try TLSContext(clientTrusting: .system)
        default: exit(64)
        }
        _ = try SHA256.digest(of: [UInt8]().span)
        exit(0)
    }
}
