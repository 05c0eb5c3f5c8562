internal import Bytes
internal import HTTP1
internal import HTTPServer
internal import JOSE
internal import OpenSSL
internal import Sockets
internal import VerificationService

/// The app's backend as `demo` plays it: it takes the webhooks of Facebook's callbacks, verifies them as any backend must,
/// prints them, and has the page that tells people what became of their data.
final class DemonstrationBackend: Sendable {
    /// Requests for deletion it remembers.
    private static let memory = 100

    /// The secret of the webhooks, as its file has it.
    let secret: String
    private let server: HTTPServer

    init() throws {
        let key = try RandomBytes.make(count: 32)
        secret = "whsec_" + Base64.encode(key)
        let deletions = Locked<[(code: String, userID: String)]>([])
        server = HTTPServer(
            configuration: HTTPServerConfiguration(addresses: [.network(.loopback(port: 0))], workerCount: 1)
        ) { _ in Handler(key: key, deletions: deletions) }
    }

    func start() throws(SocketError) { try server.start() }

    func stop() async { await server.stop(drainDelay: .zero, grace: .seconds(1)) }

    /// The settings that have the service tell it.
    func settings(secretFile: String) -> [ConfigurationKey: String] {
        let base = server.localAddresses.first.map { "http://\($0)" } ?? ""
        return [
            .callbacksURL: "\(base)/webhooks", .callbacksSecretFile: secretFile,
            .dataDeletionStatusURL: "\(base)/deletion",
        ]
    }

    private final class Handler: HTTPRequestHandler {
        private let key: [UInt8]
        private let deletions: Locked<[(code: String, userID: String)]>

        init(key: [UInt8], deletions: Locked<[(code: String, userID: String)]>) {
            self.key = key
            self.deletions = deletions
        }

        func receiveHead(
            _ head: borrowing RequestHead,
            bytes: Span<UInt8>,
            context: RequestContext,
            response: inout HTTPResponse
        ) -> HeadDecision {
            if head.method == .post, bytes.equal(head.path, "/webhooks") { return .readBody(atMost: 16_384) }
            response.status = 404
            if head.method == .get, bytes.equal(head.path, "/deletion"), let query = head.query {
                let text = String(decoding: query.map { bytes[$0] }, as: UTF8.self)
                let found = deletions.withLock { $0.last { "code=\($0.code)" == text } }
                if let found {
                    response.status = 200
                    response.body = Array("Everything about user \(found.userID) was deleted.\n".utf8)
                }
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
            guard isGenuine(head, bytes, body), take(body) else {
                response.status = 400
                return .respond
            }
            response.body = Array("{}".utf8)
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
            var message: [UInt8] = []
            message.append(bytes, id)
            message.append(".")
            message.append(bytes, timestamp)
            message.append(".")
            message.append(body)
            let key = key
            guard let code = try? HMACSHA256.authenticationCode(for: message.span, key: key.span) else { return false }
            let expected = code.bytes.indices.map { code.bytes[$0] }
            let signatures = String(decoding: field.map { bytes[$0] }, as: UTF8.self)
            return signatures.split(separator: " ").contains { signature in
                let digits = Array(signature.dropFirst("v1,".utf8.count).utf8)
                guard signature.hasPrefix("v1,"), let sent = Base64.decode(digits.span, digits.indices) else {
                    return false
                }
                return ConstantTime.areEqual(expected.span, sent.span)
            }
        }

        /// Does what the event asks for: prints it, and remembers whose data were to be deleted.
        private func take(_ body: Span<UInt8>) -> Bool {
            var document = JSONDocument()
            guard (try? document.parse(body)) != nil, document.isObject(document.root),
                let type = document.member("type", of: document.root, in: body),
                let data = document.member("data", of: document.root, in: body), document.isObject(data),
                let user = document.member("user_id", of: data, in: body),
                let code = document.member("confirmation_code", of: data, in: body)
            else { return false }
            let userID = document.string(user, in: body)
            let name = document.string(type, in: body)
            if name == "user.data_deletion_requested" {
                let entry = (code: document.string(code, in: body), userID: userID)
                deletions.withLock { deletions in
                    deletions.append(entry)
                    if deletions.count > DemonstrationBackend.memory { deletions.removeFirst() }
                }
            }
            StandardOutput.write(line: "webhook: \(name), user \(userID)")
            return true
        }
    }
}
