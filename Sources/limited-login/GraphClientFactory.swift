internal import Glibc
internal import Graph
internal import Networking
internal import OpenSSL
internal import VerificationService

/// Makes the Graph client a configuration asks for.
enum GraphClientFactory {
    /// - Returns: nil where no secrets are configured, so that there is nothing to ask Graph with.
    static func make(_ configuration: ServiceConfiguration) throws(StartError) -> GraphClient? {
        guard configuration.appSecretsFile != nil else { return nil }
        let proxy: ProxySettings
        do {
            // The environment's text is copied at once.
            proxy = try ProxySettings { name in unsafe getenv(name).map { unsafe String(cString: $0) } }
        } catch {
            throw StartError(error.description)
        }
        let trust = configuration.caFile.map { TLSContext.Trust.authorities(file: $0) } ?? .system
        return GraphClient(configuration: configuration.graph, client: HTTPSClient(trust: trust, proxy: proxy))
    }
}
