internal import ArgumentParser
internal import KeySets
internal import VerificationService

/// `keys`: fetches the JWK Set as the service would and shows what is in it.
struct Keys: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Fetches the JWK Set and shows each key: id, bits, thumbprint (RFC 7638), age and expiry.",
        discussion: "Exit code 0 when there are usable keys, 3 when there are none."
    )

    @Flag(help: "Print one JSON object.")
    var json = false

    @OptionGroup var options: ConfigurationOptions

    func run() async throws {
        let loaded: LoadedConfiguration
        do throws(ConfigurationError) {
            loaded = try options.load()
        } catch {
            throw Exit.refusing("\(error)")
        }
        let cache: JWKSetCache
        do throws(StartError) {
            cache = try ServiceParts.keyCache(loaded.configuration) { event in
                if case .sourceFailed(let source, let reason) = event {
                    StandardError.write("limited-login: \(source): \(reason)")
                }
            }
        } catch {
            throw Exit.refusing(error.description)
        }
        let status = await KeyFetchProgress.during(loaded.configuration.jwksURLs) { await cache.refresh() }
        cache.stop()
        if json {
            var bytes: [UInt8] = []
            HealthReport.writeKeys(status, to: &bytes)
            StandardOutput.write(json: bytes)
        } else {
            Self.print(status)
        }
        guard status.isUsable else { throw Exit.keysUnavailable }
    }

    private static func print(_ status: JWKSetCacheStatus) {
        guard status.isUsable else { return }
        StandardOutput.write(line: "source: \(status.source ?? "-")")
        let age = status.age?.components.seconds ?? 0
        let expiry = status.untilExpiry?.components.seconds ?? 0
        for key in status.keys {
            StandardOutput.write(
                line: "\(key.id)  RSA \(key.bits) bits  thumbprint \(key.thumbprint)  age \(age) s"
                    + "  expires in \(expiry) s"
            )
        }
        for key in status.ignoredKeys {
            StandardOutput.write(line: "ignored: key \(key.index) (\(key.id ?? "no id")): \(key.reason)")
        }
    }
}
