internal import ArgumentParser
internal import JOSE
internal import KeySets
internal import VerificationService

/// Gets the keys for one judgement on the command line: from a file, a URL, or the configured sources in order.
enum KeySetLoader {
    static func load(_ place: String?, _ configuration: ServiceConfiguration) async throws -> JSONWebKeySet {
        if let place, !place.contains("://") { return try file(place) }
        var configuration = configuration
        if let place { configuration.jwksURLs = [place] }
        let cache: JWKSetCache
        do throws(StartError) {
            cache = try KeyCacheFactory.make(configuration) { event in
                if case .sourceFailed(let source, let reason) = event {
                    StandardError.write("limited-login: \(source): \(reason)")
                }
            }
        } catch {
            throw Exit.refusing(error.description)
        }
        defer { cache.stop() }
        let status = await KeyFetchProgress.during(configuration.jwksURLs) { await cache.refresh() }
        guard status.isUsable else {
            StandardError.write("limited-login: the issuer's keys could not be fetched")
            throw Exit.keysUnavailable
        }
        return cache.snapshot.keySet
    }

    private static func file(_ path: String) throws -> JSONWebKeySet {
        do throws(FileContents.Failure) {
            let bytes = try FileContents.read(path: path, limit: JWKSetCacheLimits().keySetBytes)
            do throws(JSONWebKeySetError) {
                return try JSONWebKeySet(parsing: bytes.span)
            } catch {
                StandardError.write("limited-login: \(path) is no JWK Set: \(error)")
            }
        } catch {
            StandardError.write("limited-login: \(path) cannot be read: \(error.reason)")
        }
        throw Exit.keysUnavailable
    }
}
