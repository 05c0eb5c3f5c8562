internal import ArgumentParser
internal import Dispatch
internal import LLJOSE
internal import LLService
internal import LimitedLoginKeys

struct Keys: ParsableCommand, SettingScope {
    static let configuration = CommandConfiguration(
        commandName: "keys",
        abstract: "Fetches the issuer's keys and shows each.",
        discussion: "Exit code 0 when there are usable keys, 3 when there are none, 64 usage, 78 configuration."
    )

    @Flag(help: "Print one JSON object.")
    var json = false

    static func settings(of all: Settings) -> [any AnySetting] {
        [all.jwksURLs, all.caFile, all.jwksTTL, all.jwksMinimumTTL, all.jwksMaximumTTL, all.jwksMaximumStaleness]
    }

    @OptionGroup var options: ConfigurationOptions<Self>

    func run() throws {
        let status = try KeySetLoader.fetch(options.load()).status
        if json { StandardOutput.write(json: JSON { HealthReport.writeKeys(status, to: &$0) }) }
        guard status.isUsable else { throw Exit.unavailable }
        if json { return }
        StandardOutput.write(line: "source: \(status.source ?? "-")")
        let age = status.age?.components.seconds ?? 0
        let expiry = status.untilExpiry?.components.seconds ?? 0
        for key in status.keys {
            let name = "\(key.keyID)  RSA \(key.modulusBitCount) bits  thumbprint \(key.thumbprint)"
            StandardOutput.write(line: "\(name)  age \(age) s  expires in \(expiry) s")
        }
        for key in status.ignoredKeys {
            StandardOutput.write(line: "ignored: key \(key.index) (\(key.keyID ?? "no id")): \(key.reason)")
        }
    }
}

extension JWKSetCache {
    /// Fetches the keys now, and waits until the fetch has ended, or until `end`.
    func fetch(until end: DispatchTime = .distantFuture) {
        let ended = DispatchSemaphore(value: 0)
        Task {
            _ = await refresh()
            ended.signal()
        }
        _ = ended.wait(timeout: end)
    }
}

/// Gets the keys for one verdict on the command line: from a file, a URL, or the configured sources in order.
enum KeySetLoader {
    static func load(_ place: String?, _ configuration: ServiceConfiguration) throws -> JWKSet {
        if let place, !place.contains("://") {
            let most = JWKSet.Limits.byteCount
            let bytes = try TokenInput.contents(of: place, limit: most, code: Exit.unavailable)
            do throws(JWKSetError) {
                return try JWKSet(parsing: bytes.span)
            } catch { throw Exit.refusing("\(place) is no JWK Set: \(error)", Exit.unavailable) }
        }
        var configuration = configuration
        if let place { configuration.jwksURLs = [place] }
        let (keys, status) = try fetch(configuration)
        guard status.isUsable else { throw Exit.refusing("the issuer's keys could not be fetched", Exit.unavailable) }
        return keys
    }

    /// Fetches the keys as the service would. It names failing sources on standard error.
    static func fetch(_ configuration: ServiceConfiguration) throws -> (keys: JWKSet, status: JWKSetCacheStatus) {
        let cache = try cache(configuration)
        defer { cache.stop() }
        // The queues of the keys and of their source, two name look-ups, Dispatch's own, and the task.
        Threads.require(6)
        cache.fetch()
        return (cache.snapshot.keySet, cache.status)
    }

    /// A cache that names failing sources on standard error. It has no seed file: that belongs to the service alone,
    /// which would otherwise start with the keys of the issuer asked here.
    static func cache(_ configuration: ServiceConfiguration) throws(StartError) -> JWKSetCache {
        var configuration = configuration
        configuration.jwksFile = nil
        return try ServiceFactory.keyCache(configuration) { event in
            guard case .sourceFailed(let source, let reason) = event else { return }
            StandardError.write("limited-login: \(source): \(reason)")
        }
    }
}
