internal import Bytes
internal import OpenSSL

/// The secrets that webhooks are signed with (Standard Webhooks, "Signature scheme"). They are never printed.
///
/// The file has one or two lines: `whsec_` and 24 to 64 bytes in base64. With two, both sign, so that a secret can be
/// changed while backends know the one or the other. Empty lines and lines that begin with `#` are comments.
package struct WebhookSecrets: Sendable, Equatable {
    /// Greatest size of the file, in bytes: two secrets and some comment.
    package static let fileByteLimit = 16_384
    /// Bytes of a secret, as Standard Webhooks has them.
    static let byteRange = 24...64

    private let keys: [[UInt8]]

    /// Reads the file's text; `place` is how messages name it. They never quote it.
    package init(parsing text: [UInt8], place: String) throws(ConfigurationError) {
        var keys: [[UInt8]] = []
        for line in FileLine.all(of: text, place: place) {
            guard keys.count < 2 else { throw line.error("there are more than two secrets") }
            let prefix = Array("whsec_".utf8)
            let digits = Array(line.text.dropFirst(prefix.count))
            guard line.text.starts(with: prefix), let key = Base64.decode(digits.span, digits.indices),
                Self.byteRange.contains(key.count)
            else {
                throw line.error(
                    "a secret is whsec_ and \(Self.byteRange.lowerBound) to \(Self.byteRange.upperBound) "
                        + "bytes in base64, as 'echo whsec_$(openssl rand -base64 32)' makes it"
                )
            }
            guard !keys.contains(key) else { throw line.error("the same secret stands in the file twice") }
            keys.append(key)
        }
        guard !keys.isEmpty else { throw ConfigurationError(place: place, reason: "the file holds no secret") }
        self.keys = keys
    }

    /// The value of `webhook-signature`: `v1,` and the HMAC-SHA256 of identifier, time and body in base64, for each
    /// secret, separated by spaces.
    func signature(id: String, timestamp: Int64, body: [UInt8]) throws(OpenSSLError) -> String {
        let message = Array("\(id).\(timestamp).".utf8) + body
        var signatures: [String] = []
        for key in keys {
            let code = try HMACSHA256.authenticationCode(for: message.span, key: key.span)
            signatures.append("v1,\(Base64.encode(code.bytes.indices.map { code.bytes[$0] }))")
        }
        return signatures.joined(separator: " ")
    }
}

extension WebhookSecrets: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "WebhookSecrets(\(keys.count), redacted)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
