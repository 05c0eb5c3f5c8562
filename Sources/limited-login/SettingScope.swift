internal import LLService

/// The settings of a command: `--help` shows these, `--help-all` also the others.
protocol SettingScope: Sendable {
    /// The settings in the order of their importance.
    static var keys: [ConfigurationKey] { get }
    /// True if the command also reads the other settings. If not, it needs no app id, and a fault in them does not stop
    /// it.
    static var readsOthers: Bool { get }
}

extension SettingScope {
    static var readsOthers: Bool { true }
}

/// The settings of the service that most operators change.
enum ServiceSettings: SettingScope {
    static let keys: [ConfigurationKey] = [
        .appIDs, .listen, .adminListen, .clientKeysFile, .nonceSecretFile, .accessTokens, .appSecretsFile, .gateway,
        .replayStore,
    ]
}

/// The settings of commands that judge a token.
enum VerdictSettings: SettingScope {
    static let keys: [ConfigurationKey] = [.appIDs]
    /// The settings that may change a verdict; `binding` comes with the question.
    static let all: [ConfigurationKey] = [
        .appIDs, .issuers, .jwksURLs, .caFile, .clockSkewSeconds, .maxTokenAgeSeconds, .tracking,
        .accessTokens,
        .appSecretsFile, .graphURL, .graphVersion, .nonceSecretFile,
    ]

    /// The flags that give another process the settings that are set.
    static func flags(of loaded: LoadedConfiguration) -> [(name: String, value: String)] {
        all.compactMap { key in
            loaded.settings[key].map { ("--\(key.flagName)", key.definition.kind.text(of: $0.value)) }
        }
    }
}

/// The settings of the page that judges a token.
enum PageSettings: SettingScope {
    static let keys = VerdictSettings.keys + [.listen, .jwksURLs, .accessTokens, .appSecretsFile, .tracking]
}

/// The settings of the key set.
enum KeySettings: SettingScope {
    static let keys: [ConfigurationKey] = [
        .jwksURLs, .caFile, .jwksTTLSeconds, .jwksMinimumTTLSeconds, .jwksMaximumTTLSeconds, .jwksMaxStaleSeconds,
    ]
    static let readsOthers = false
}

/// The settings of the health check.
enum HealthSettings: SettingScope {
    static let keys: [ConfigurationKey] = [.adminListen]
    static let readsOthers = false
}

/// The settings of issuing nonces.
enum NonceSettings: SettingScope {
    static let keys: [ConfigurationKey] = [.appIDs, .nonceSecretFile, .nonceTTLSeconds]
}

/// The settings of calls to Graph.
enum GraphSettings: SettingScope {
    static let keys: [ConfigurationKey] = [.appIDs, .appSecretsFile, .graphURL, .graphVersion, .caFile]
}

/// The settings of signed requests.
enum SignedRequestSettings: SettingScope {
    static let keys: [ConfigurationKey] = [.appIDs, .appSecretsFile, .clockSkewSeconds]
}

/// The settings of the keys that sign tokens.
enum SigningKeySettings: SettingScope {
    static let keys: [ConfigurationKey] = [.signingKeysFile]
    static let readsOthers = false
}

/// The settings of the issued tokens.
enum TokenSettingsScope: SettingScope {
    static let keys: [ConfigurationKey] = [.appIDs, .issuer, .signingKeysFile, .tokenAudiences]
}
