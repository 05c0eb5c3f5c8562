internal import LLBytes
package import LLHTTP
package import LLJOSE
internal import LimitedLogin

package struct WebhookTarget: Sendable, Equatable {
    let url: HTTPURL
    let secrets: WebhookSecrets
    /// The page of ``DeletionStatus``, without a query.
    let statusURL: HTTPURL

    package init(url: HTTPURL, secrets: WebhookSecrets, statusURL: HTTPURL) {
        self.url = url
        self.secrets = secrets
        self.statusURL = statusURL
    }

    func request(_ event: CallbackEvent, timestamp: Int64) throws(WebhookFailure) -> HTTPSRequest {
        let body = event.content
        guard let signature = try? secrets.signature(id: event.id, timestamp: timestamp, body: body) else {
            throw WebhookFailure(reason: .unsent, sentence: "it could not be signed")
        }
        return HTTPSRequest(
            .post,
            url,
            headers: [
                (name: "webhook-id", value: event.id),
                (name: "webhook-timestamp", value: "\(timestamp)"),
                (name: "webhook-signature", value: signature),
            ],
            body: .json(body)
        )
    }
}

/// The page on which a person reads the state of their data's deletion, and the code for it (Meta, "Data Deletion
/// Request Callback").
package struct DeletionStatus: Sendable, Equatable {
    /// Greatest length of both in bytes: browsers and dashboards certainly accept it.
    private static let byteLimit = 2_048

    let url: String
    let confirmationCode: String
}

extension DeletionStatus {
    struct Unusable: Error {
        let sentence = "its url is none that people can open, or its confirmation_code is not of visible characters"
    }

    /// The backend's own answer; nil unless it is a JSON object with both members.
    init?(answer: [UInt8]) throws(Unusable) {
        var document = JSONDocument(limits: JSONLimits(byteCount: 65_536))
        guard (try? document.parse(answer.span)) != nil, document.isObject(document.root),
            let url = document.member("url", of: document.root, in: answer.span),
            let code = document.member("confirmation_code", of: document.root, in: answer.span)
        else { return nil }
        guard document.isString(url), document.isString(code) else { throw Unusable() }
        let place = document.string(url, in: answer.span)
        let name = document.string(code, in: answer.span)
        // A fragment allows the bytes of a path (RFC 3986 section 3.5), so it is checked as one.
        let judged = place.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).joined(separator: "/")
        guard place.utf8.count <= Self.byteLimit, (try? HTTPURL(parsing: judged)) != nil,
            (1...Self.byteLimit).contains(name.utf8.count), name.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw Unusable() }
        self.init(url: place, confirmationCode: name)
    }

    func write(to body: inout [UInt8]) {
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("url", url, to: &body)
        JSONWriter.member("confirmation_code", confirmationCode, to: &body)
        JSONWriter.raw("}", to: &body)
    }
}

/// The secrets that sign webhooks (Standard Webhooks, "Signature scheme").
///
/// The file has one or two lines: `whsec_` and 24 to 64 bytes in base64. If there are two, both sign, so that a secret can be
/// changed while some backends know the old one and others the new one.
package struct WebhookSecrets: Sendable, Equatable, Redacted {
    /// Greatest size of the file, in bytes: two secrets and some comments.
    package static let fileByteLimit = 16_384
    /// The length of a secret in bytes, from Standard Webhooks.
    static let byteRange = 24...64

    private let keys: [[UInt8]]

    /// Reads the file's text; messages call the file `place` and never quote it.
    package init(parsing text: [UInt8], place: String) throws(ConfigurationError) {
        let prefix = Array("whsec_".utf8)
        let (key, other) = try FileLine.secrets(of: text, place: place, none: "the file holds no secret") {
            line throws(ConfigurationError) in
            let digits = Array(line.text.dropFirst(prefix.count))
            guard line.text.starts(with: prefix), let key = Base64.decode(digits.span, digits.indices),
                Self.byteRange.contains(key.count)
            else {
                throw line.error(
                    "a secret is whsec_ and \(Self.byteRange.lowerBound) to \(Self.byteRange.upperBound) "
                        + "bytes in base64, as 'echo whsec_$(openssl rand -base64 32)' makes it"
                )
            }
            return key
        }
        keys = [key] + (other.map { [$0] } ?? [])
    }

    /// The value of `webhook-signature`: `v1,` and an HMAC-SHA256 in base64, for each secret.
    package func signature(id: String, timestamp: Int64, body: [UInt8]) throws(OpenSSLError) -> String {
        let message = Array("\(id).\(timestamp).".utf8) + body
        var signatures: [String] = []
        for key in keys {
            let code = try HMACSHA256.authenticationCode(for: message.span, key: key.span)
            signatures.append("v1,\(Base64.encode(code.bytes.indices.map { code.bytes[$0] }))")
        }
        return signatures.joined(separator: " ")
    }
}
