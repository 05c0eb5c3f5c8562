package import HTTPServer
package import OpenSSL
package import Sockets

/// A small issuer that stands in for Facebook on a machine without network: discovery, JWK Set, tokens on demand and
/// key rotation; and for Graph, as far as permissions go. For development and tests alone: it signs whatever it is asked to.
package final class StandInIssuer: Sendable {
    /// How the issuer is set up.
    package struct Configuration: Sendable {
        /// Where it listens.
        package var address: SocketAddress
        /// `iss` of its tokens; Facebook's by default, so that a service with default settings accepts them.
        package var issuer = "https://www.facebook.com"
        /// `aud` of its tokens where the request names none.
        package var audience: String
        /// `max-age` of the JWK Set, in seconds.
        package var maxAgeSeconds = 3600
        /// The secret of every app at the stand-in's Graph.
        package var appSecret = "stand-in-app-secret"

        package init(address: SocketAddress, audience: String) {
            self.address = address
            self.audience = audience
        }
    }

    /// The signing keys.
    package let keys: IssuerKeyRing
    /// Makes payloads from claims.
    package let template: ClaimsTemplate
    /// Graph, and the uninstall endpoint.
    package let graph: StandInGraph
    /// Facebook's callbacks.
    package let callbacks: StandInCallbacks
    private let server: HTTPServer

    /// - Parameter front: wraps the issuer's handler, to answer some requests in its place.
    package init(
        configuration: Configuration,
        front: @escaping @Sendable (StandInIssuerHandler) -> any HTTPRequestHandler = { $0 }
    ) throws(OpenSSLError) {
        let keys = try IssuerKeyRing()
        let template = ClaimsTemplate(issuer: configuration.issuer, audience: configuration.audience)
        let graph = StandInGraph(appSecret: configuration.appSecret)
        let callbacks = StandInCallbacks(appSecret: configuration.appSecret)
        self.graph = graph
        self.callbacks = callbacks
        self.keys = keys
        self.template = template
        server = HTTPServer(
            configuration: HTTPServerConfiguration(addresses: [.network(configuration.address)], workerCount: 1)
        ) { _ in
            front(
                StandInIssuerHandler(
                    keys: keys,
                    template: template,
                    graph: graph,
                    callbacks: callbacks,
                    configuration: configuration
                )
            )
        }
    }

    /// Binds and serves; the address with its real port is in ``address`` from then on.
    package func start() throws(SocketError) { try server.start() }

    /// Where it listens, once started.
    package var address: SocketAddress? { server.localAddresses.first?.network }

    /// Stops serving.
    package func stop() async {
        callbacks.stop()
        await server.stop(drainDelay: .zero, grace: .seconds(1))
    }

    /// A token in Facebook's wire style with these claims (a JSON object's text), signed by the newest key.
    package func token(claims: String, now: Int64) throws -> String {
        let minter = keys.current
        let payload = try template.payload(claims: Array(claims.utf8), now: now)
        graph.recordLogin(payload: payload, statuses: [:])
        return try minter.mint(header: minter.header, payload: payload)
    }
}
