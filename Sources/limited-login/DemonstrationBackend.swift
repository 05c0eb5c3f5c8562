internal import Bytes
internal import HTTP1
internal import HTTPServer
internal import OpenSSL
internal import Sockets
internal import StandInIssuer

/// The app's backend as `demo` plays it: it takes the webhooks of Facebook's callbacks, verifies them as any backend must,
/// prints them, and has the page that tells people what became of their data.
final class DemonstrationBackend: HTTPRequestHandler {
    /// The secret of the webhooks.
    private let key: [UInt8]
    /// The last requests for deletion: the page of each, and whose data were to be deleted.
    private var deletions: [(query: String, userID: String)] = []

    init(key: [UInt8]) { self.key = key }

    func receiveHead(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> HeadDecision {
        if head.method == .post, bytes.equal(head.path, "/webhooks") { return .readBody(atMost: 16_384) }
        let query = head.query.map { bytes.text($0) }
        if head.method == .get, bytes.equal(head.path, "/deletion"),
            let found = deletions.last(where: { $0.query == query })
        {
            response.body = Array("Everything about user \(found.userID) was deleted.\n".utf8)
        } else {
            response.status = 404
        }
        response.addField("Content-Type: text/plain; charset=utf-8")
        return .respond
    }

    func receiveRequest(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        body: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> RequestDecision {
        response.addField("Content-Type: application/json")
        if isGenuine(head, bytes, body), take(body) {
            response.body = Array("{}".utf8)
        } else {
            response.status = 400
        }
        return .respond
    }

    /// Whether the webhook was signed with the secret, within five minutes (Standard Webhooks, "Verifying").
    private func isGenuine(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ body: Span<UInt8>) -> Bool {
        guard let id = head.value(of: "webhook-id", in: bytes),
            let timestamp = head.value(of: "webhook-timestamp", in: bytes),
            let seconds = DecimalNumber.parse(bytes, timestamp),
            let field = head.value(of: "webhook-signature", in: bytes),
            (WallClock.unixSeconds() - Int64(seconds)).magnitude <= 300
        else { return false }
        let message = Array("\(bytes.text(id)).\(bytes.text(timestamp)).".utf8) + body.indices.map { body[$0] }
        let key = key
        guard let code = try? HMACSHA256.authenticationCode(for: message.span, key: key.span) else { return false }
        let genuine = Array("v1,\(Base64.encode(code.bytes.indices.map { code.bytes[$0] }))".utf8)
        return bytes.text(field).split(separator: " ").contains { signature in
            ConstantTime.areEqual(Array(signature.utf8).span, genuine.span)
        }
    }

    /// Does what the event asks for: prints it, and remembers whose data were to be deleted.
    private func take(_ body: Span<UInt8>) -> Bool {
        guard let event = try? ReceivedObject(body.indices.map { body[$0] }), let type = event.string("type"),
            let userID = event.string("data", "user_id"), let code = event.string("data", "confirmation_code")
        else { return false }
        if type == "user.data_deletion_requested" {
            deletions = deletions.suffix(99) + [("code=\(code)", userID)]
        }
        StandardOutput.write(line: "webhook: \(type), user \(userID)")
        return true
    }
}
