internal import ArgumentParser
internal import JOSE
internal import KeySets
internal import OpenSSL
internal import VerificationService

/// Gets the keys for one judgement on the command line: from a file, a URL, or the configured sources in order.
enum KeySetLoader {
    static func load(_ place: String?, _ configuration: ServiceConfiguration) async throws -> JSONWebKeySet {
        if let place, !place.contains("://") { return try file(place) }
        var configuration = configuration
        if let place { configuration.jwksURLs = [place] }
        let cache: JWKSetCache
        do throws(StartError) {
            cache = try ServiceParts.keyCache(configuration) { event in
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
            let bytes = try FileContents.read(path: path, limit: JWKSetCacheLimits().keySetBytes, allowingPipe: true)
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

/// Says what is waited for when fetching the keys takes longer than a moment.
enum KeyFetchProgress {
    /// How long nothing is said.
    static let patience = Duration.milliseconds(700)

    /// Runs `fetch`; while it lasts longer, one line on standard error names the sources.
    static func during<Value: Sendable>(_ sources: [String], _ fetch: () async -> Value) async -> Value {
        let notice = Task {
            try await Task.sleep(for: patience)
            StandardError.write(
                "limited-login: fetching the issuer's keys from \(sources.joined(separator: ", then ")) ..."
            )
        }
        defer { notice.cancel() }
        return await fetch()
    }
}
