internal import KeySets
internal import Networking
internal import VerificationService

/// Makes the key cache a configuration asks for.
enum KeyCacheFactory {
    static func make(
        _ configuration: ServiceConfiguration,
        events: @escaping JWKSetCache.EventHandler
    ) throws(StartError) -> JWKSetCache {
        var limits = JWKSetCacheLimits()
        limits.timeToLive = .seconds(configuration.jwksTTLSeconds)
        limits.minimumTimeToLive = .seconds(configuration.jwksMinimumTTLSeconds)
        limits.maximumTimeToLive = .seconds(configuration.jwksMaximumTTLSeconds)
        limits.maximumStaleness = .seconds(configuration.jwksMaxStaleSeconds)
        var sources: [any JWKSetSource] = []
        for url in configuration.jwksURLs {
            do throws(JWKSetSourceError) {
                sources.append(try HTTPSJWKSetSource(url: url, authoritiesFile: configuration.caFile))
            } catch {
                throw StartError("keys cannot be fetched from \(url): \(error)")
            }
        }
        do throws(JWKSetCacheError) {
            return try JWKSetCache(
                sources: sources,
                limits: limits,
                seedFile: configuration.jwksFile,
                events: events
            )
        } catch {
            throw StartError("\(error)")
        }
    }
}
