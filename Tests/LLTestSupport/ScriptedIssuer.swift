internal import LLHTTP

/// A server on loopback that answers as a test's script says, rightly or wrongly, and records the requests.
///
/// Each connection has a thread of its own, so that a script may block.
package final class ScriptedIssuer: Sendable {
    package struct Request: Sendable {
        /// From 1, in the order of arrival.
        package let number: Int
        package let line: String
        /// Names in lower case.
        package let fields: [(name: String, value: String)]
        /// The body, with the length that `Content-Length` says.
        package let body: [UInt8]

        package func value(of name: String) -> String? { fields.first { $0.name == name }?.value }
        package var path: String { line.split(separator: " ").dropFirst().first.map(String.init) ?? "" }
    }

    /// Answers one request. The connection closes on return, unless the script told the peer to keep it open.
    package typealias Script = @Sendable (Request, ScriptedPeer) throws -> Void

    /// How the server treats a connection before it reads a request.
    package enum Manner: Sendable {
        case plain
        case tls(TestCertificates.Identity)
        /// Accepts and sends nothing.
        case silent
        /// Accepts and resets at the first byte.
        case resetting
    }

    package var port: UInt16 { listener.port }
    private let listener: ScriptedListener
    private let context: TLSContext?
    private let storage: Locked<(script: Script, requests: [Request])>

    /// Listens at once on a free port of 127.0.0.1 (or ::1).
    package init(_ manner: Manner = .plain, ipv6: Bool = false, script: @escaping Script) throws {
        listener = try ScriptedListener(ipv6: ipv6)
        context = if case .tls(let identity) = manner { try identity.serverContext() } else { nil }
        storage = Locked((script, []))
        listener.serve { self.serve($0, manner) }
    }

    /// `https://localhost:<port>/keys`, or the same with http.
    package var url: String { "http\(context == nil ? "" : "s")://localhost:\(port)/keys" }

    package var requests: [Request] { storage.withLock { $0.requests } }
    package var requestCount: Int { storage.withLock { $0.requests.count } }
    package var connectionCount: Int { listener.connectionCount }

    /// Forgets the requests so far: counts and numbers begin anew.
    package func forgetRequests() { storage.withLock { $0.requests = [] } }

    package func setScript(_ script: @escaping Script) { storage.withLock { $0.script = script } }

    /// Closes the listener and every connection, and wakes scripts that wait.
    package func stop() { listener.stop() }

    private func serve(_ peer: ScriptedPeer, _ manner: Manner) {
        do {
            switch manner {
            case .silent: return peer.waitUntilClosed()
            case .resetting:
                // The first byte shows that the client is connected.
                _ = try peer.receive(1)
                return peer.reset()
            case .plain: break
            case .tls: if let context { try peer.startTLS(context) }
            }
            repeat {
                peer.keepsOpen = false
                let (line, fields) = try peer.readHead()
                let length = fields.first { $0.name == "content-length" }.flatMap { Int($0.value) } ?? 0
                var body: [UInt8] = []
                while body.count < length { body += try peer.receive(length - body.count) }
                let (request, script) = storage.withLock { storage in
                    let number = storage.requests.count + 1
                    let request = Request(number: number, line: line, fields: fields, body: body)
                    storage.requests.append(request)
                    return (request, storage.script)
                }
                try script(request, peer)
            } while peer.keepsOpen
            peer.finish()
        } catch {
            // The client disconnected; many tests intend this.
        }
    }
}
