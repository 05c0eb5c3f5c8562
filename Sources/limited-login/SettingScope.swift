internal import LLService

/// The settings that a command is about: `--help` shows these, `--help-all` the others too.
protocol SettingScope: Sendable {
    /// The most needed first.
    static var keys: [ConfigurationKey] { get }
    /// Whether the command reads the others as well. If not, it needs no app id, and a fault of theirs does not stop it.
    static var readsOthers: Bool { get }
}

extension SettingScope {
    static var readsOthers: Bool { true }
}

/// Of the service: those that most operators set.
enum ServiceSettings: SettingScope {
    static let keys: [ConfigurationKey] = [
        .appIDs, .listen, .adminListen, .clientKeysFile, .nonceSecretFile, .accessTokens, .appSecretsFile, .gateway,
        .replayStore,
    ]
}

/// Of what judges a token.
enum VerdictSettings: SettingScope {
    static let keys: [ConfigurationKey] = [.appIDs]
    /// The settings that may change a verdict; `binding` is the question's own.
    static let all: [ConfigurationKey] = [
        .appIDs, .issuers, .jwksURLs, .caFile, .clockSkewSeconds, .maxTokenAgeSeconds, .tracking,
        .accessTokens,
        .appSecretsFile, .graphURL, .graphVersion, .nonceSecretFile,
    ]

    /// The flags that give another process those that are set.
    static func flags(of loaded: LoadedConfiguration) -> [(name: String, value: String)] {
        all.compactMap { key in
            loaded.settings[key].map { ("--\(key.flagName)", key.definition.kind.text(of: $0.value)) }
        }
    }
}

/// Of the page that judges a token.
enum PageSettings: SettingScope {
    static let keys = VerdictSettings.keys + [.listen, .jwksURLs, .accessTokens, .appSecretsFile, .tracking]
}

/// Of the key set.
enum KeySettings: SettingScope {
    static let keys: [ConfigurationKey] = [
        .jwksURLs, .caFile, .jwksTTLSeconds, .jwksMinimumTTLSeconds, .jwksMaximumTTLSeconds, .jwksMaxStaleSeconds,
    ]
    static let readsOthers = false
}

/// Of the health check.
enum HealthSettings: SettingScope {
    static let keys: [ConfigurationKey] = [.adminListen]
    static let readsOthers = false
}

/// Of issuing nonces.
enum NonceSettings: SettingScope {
    static let keys: [ConfigurationKey] = [.appIDs, .nonceSecretFile, .nonceTTLSeconds]
}

/// Of questions to Graph.
enum GraphSettings: SettingScope {
    static let keys: [ConfigurationKey] = [.appIDs, .appSecretsFile, .graphURL, .graphVersion, .caFile]
}

/// Of signed requests.
enum SignedRequestSettings: SettingScope {
    static let keys: [ConfigurationKey] = [.appIDs, .appSecretsFile, .clockSkewSeconds]
}
