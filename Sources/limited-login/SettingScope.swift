internal import LLService

private let all = Settings.all

/// The settings of a command: `--help` shows these, `--help-all` also the others.
protocol SettingScope: Sendable {
    static var settings: [any AnySetting] { get }
    /// True if the command also reads the other settings. If not, it needs no app id, and a fault in them does not stop
    /// it.
    static var readsOthers: Bool { get }
}

extension SettingScope {
    static var readsOthers: Bool { true }
}

enum ServiceSettings: SettingScope {
    static let settings: [any AnySetting] = [
        all.appIDs, all.listen, all.adminListen, all.clientKeysFile, all.nonceSecretFile, all.accessTokensAreAccepted,
        all.appSecretsFile, all.gatewayIsEnabled, all.replayStore,
    ]
}

enum VerdictSettings: SettingScope {
    static let settings: [any AnySetting] = [all.appIDs]
    /// The settings that may change a verdict; `binding` comes with the question.
    static let decisive: [any AnySetting] = [
        all.appIDs, all.issuers, all.jwksURLs, all.caFile, all.clockSkew, all.maxTokenAgeSeconds,
        all.onlyLimitedTracking, all.accessTokensAreAccepted, all.appSecretsFile, all.graphURL, all.graphVersion,
        all.nonceSecretFile,
    ]

    /// The flags that give another process the settings that are set.
    static func flags(of configuration: ServiceConfiguration) -> [(name: String, value: String)] {
        decisive.map { $0.row }.compactMap { row in
            configuration.settings[row.name].map { ("--\(row.flagName)", row.kind.text(of: $0.value)) }
        }
    }
}

enum PageSettings: SettingScope {
    static let settings =
        VerdictSettings.settings + [
            all.listen, all.jwksURLs, all.accessTokensAreAccepted, all.appSecretsFile, all.onlyLimitedTracking,
        ]
}

enum KeySettings: SettingScope {
    static let settings: [any AnySetting] = [
        all.jwksURLs, all.caFile, all.jwksTTL, all.jwksMinimumTTL, all.jwksMaximumTTL, all.jwksMaximumStaleness,
    ]
    static let readsOthers = false
}

enum HealthSettings: SettingScope {
    static let settings: [any AnySetting] = [all.adminListen]
    static let readsOthers = false
}

enum NonceSettings: SettingScope {
    static let settings: [any AnySetting] = [all.appIDs, all.nonceSecretFile, all.nonceTTL]
}

enum GraphSettings: SettingScope {
    static let settings: [any AnySetting] = [
        all.appIDs, all.appSecretsFile, all.graphURL, all.graphVersion, all.caFile,
    ]
}

enum SignedRequestSettings: SettingScope {
    static let settings: [any AnySetting] = [all.appIDs, all.appSecretsFile, all.clockSkew]
}

enum SigningKeySettings: SettingScope {
    static let settings: [any AnySetting] = [all.signingKeysFile]
    static let readsOthers = false
}

enum TokenSettingsScope: SettingScope {
    static let settings: [any AnySetting] = [all.appIDs, all.issuer, all.signingKeysFile, all.tokenAudiences]
}
