package import LimitedLogin

/// The file with the secrets of issued nonces: one or two lines of 32 to 128 visible ASCII characters, the first of which
/// issues; both recognise. Empty lines and lines that begin with `#` are comments.
package enum NonceSecretsFile {
    /// Greatest size of the file, in bytes: two secrets and some comment.
    package static let byteLimit = 16_384

    /// The issuer that the text makes; `place` is how messages name it. They never quote it.
    package static func issuer(parsing text: [UInt8], place: String) throws(ConfigurationError) -> NonceIssuer {
        var secrets: [NonceSecret] = []
        for line in FileLine.all(of: text, place: place) {
            guard secrets.count < 2 else { throw line.error("there are more than two secrets") }
            let secret: NonceSecret
            do throws(InvalidConfiguration) {
                secret = try NonceSecret(text: String(decoding: line.text, as: UTF8.self))
            } catch {
                throw line.error(error.description)
            }
            guard secrets.first != secret else { throw line.error("the same secret stands in the file twice") }
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
