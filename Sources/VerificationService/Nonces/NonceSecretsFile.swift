package import LimitedLogin
internal import OpenSSL

/// The file with the secrets of issued nonces: one or two lines of 32 to 128 visible ASCII characters, the first of which
/// issues; both recognise. Empty lines and lines that begin with `#` are comments.
package enum NonceSecretsFile {
    /// Greatest size of the file, in bytes: two secrets and some comment.
    static let byteLimit = 16_384

    /// The issuer that the file at `path` makes.
    package static func issuer(path: String) throws(ConfigurationError) -> NonceIssuer {
        let text: [UInt8]
        do throws(FileContents.Failure) {
            text = try FileContents.read(path: path, limit: byteLimit)
        } catch {
            throw ConfigurationError(place: path, reason: "the file cannot be read: \(error.reason)")
        }
        return try issuer(parsing: text, place: path)
    }

    /// The issuer that the text makes; `place` is how messages name it. They never quote it.
    static func issuer(parsing text: [UInt8], place: String) throws(ConfigurationError) -> NonceIssuer {
        var secrets: [NonceSecret] = []
        for (index, line) in text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            // Editors of other systems end lines with a carriage return.
            let line = line.last == 0x0D ? line.dropLast() : line
            if line.isEmpty || line.first == UInt8(ascii: "#") { continue }
            let linePlace = "\(place): line \(index + 1)"
            guard secrets.count < 2 else {
                throw ConfigurationError(place: linePlace, reason: "there are more than two secrets")
            }
            let secret: NonceSecret
            do throws(InvalidConfiguration) {
                secret = try NonceSecret(text: String(decoding: line, as: UTF8.self))
            } catch {
                throw ConfigurationError(place: linePlace, reason: error.description)
            }
            guard secrets.first != secret else {
                throw ConfigurationError(place: linePlace, reason: "the same secret stands in the file twice")
            }
            secrets.append(secret)
        }
        guard let first = secrets.first else {
            throw ConfigurationError(
                place: place,
                reason: "the file holds no secret; 'limited-login nonce secret' makes one"
            )
        }
        return NonceIssuer(secret: first, former: secrets.count > 1 ? secrets[1] : nil)
    }
}
