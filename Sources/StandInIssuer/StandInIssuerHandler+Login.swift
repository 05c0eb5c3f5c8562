internal import Bytes
internal import HTTP1
internal import OpenSSL
internal import Sockets

extension StandInIssuerHandler {
    /// Answers `GET /login`, and `GET /login/NAME` for a token of the catalogue, with a body that is ready for the
    /// service's `POST /verify`; false where the request is for something else.
    func answerLogin(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ response: inout HTTPResponse
    ) -> Bool {
        let path = Self.text(head.path, bytes)
        guard head.method == .get || head.method == .head, path == "/login" || path.hasPrefix("/login/") else {
            return false
        }
        let name = path.dropFirst("/login/".count)
        guard let entry = CatalogueEntry.named(name.isEmpty ? "good" : String(name)) else { return false }
        do {
            let nonce = "n-" + Hexadecimal.encode(try RandomBytes.make(count: 8))
            let workshop = try CatalogueWorkshop(
                template: template,
                keys: keys,
                nonce: nonce,
                now: WallClock.unixSeconds()
            )
            let token = try entry.token(workshop)
            graph.recordLogin(payload: Array(try workshop.payload().utf8), statuses: [:])
            let members = [("id_token", token)] + entry.requestMembers(workshop).map { ($0.name, $0.value) }
            json(FacebookJSON.object(members.map { ($0.0, FacebookJSON.string($0.1)) }), &response)
        } catch {
            _ = refuse(500, "\(error)", &response)
        }
        return true
    }
}
