internal import ArgumentParser
internal import FoundationEssentials
internal import VerificationService

/// The flags of the service: one for each `ConfigurationKey`, all optional, all above the environment and the file.
struct ConfigurationOptions: ParsableArguments, Sendable {
    @Option(name: .customLong("config"), help: "The configuration file (default: config/limited-login.json, if there).")
    var file: String?

    @Option(help: .key(.appIDs)) var appIds: String?
    @Option(help: .key(.issuers)) var issuers: String?
    @Option(help: .key(.jwksURLs)) var jwksUrls: String?
    @Option(help: .key(.jwksFile)) var jwksFile: String?
    @Option(help: .key(.caFile)) var caFile: String?
    @Option(help: .key(.jwksTTLSeconds)) var jwksTtlSeconds: String?
    @Option(help: .key(.jwksMinimumTTLSeconds)) var jwksMinimumTtlSeconds: String?
    @Option(help: .key(.jwksMaximumTTLSeconds)) var jwksMaximumTtlSeconds: String?
    @Option(help: .key(.jwksMaxStaleSeconds)) var jwksMaxStaleSeconds: String?
    @Option(help: .key(.listen)) var listen: String?
    @Option(help: .key(.listenMode)) var listenMode: String?
    @Option(help: .key(.adminListen)) var adminListen: String?
    @Option(help: .key(.workers)) var workers: String?
    @Option(help: .key(.clockSkewSeconds)) var clockSkewSeconds: String?
    @Option(help: .key(.maxTokenAgeSeconds)) var maxTokenAgeSeconds: String?
    @Option(help: .key(.binding)) var binding: String?
    @Option(help: .key(.tracking)) var tracking: String?
    @Option(help: .key(.clientKeysFile)) var clientKeysFile: String?
    @Option(help: .key(.tlsCertificateFile)) var tlsCertificateFile: String?
    @Option(help: .key(.tlsKeyFile)) var tlsKeyFile: String?
    @Option(help: .key(.tlsClientCAFile)) var tlsClientCaFile: String?
    @Option(help: .key(.gateway)) var gateway: String?
    @Option(help: .key(.nonceSecretFile)) var nonceSecretFile: String?
    @Option(help: .key(.nonceTTLSeconds)) var nonceTtlSeconds: String?
    @Option(help: .key(.replay)) var replay: String?
    @Option(help: .key(.replayStore)) var replayStore: String?
    @Option(help: .key(.replayStorePasswordFile)) var replayStorePasswordFile: String?
    @Option(help: .key(.replayStoreCapacity)) var replayStoreCapacity: String?
    @Option(help: .key(.appSecretsFile)) var appSecretsFile: String?
    @Option(help: .key(.graphURL)) var graphUrl: String?
    @Option(help: .key(.graphVersion)) var graphVersion: String?
    @Option(help: .key(.uninstallURL)) var uninstallUrl: String?
    @Option(help: .key(.drainDelaySeconds)) var drainDelaySeconds: String?
    @Option(help: .key(.logLevel)) var logLevel: String?
    @Option(help: .key(.logFormat)) var logFormat: String?

    /// What was given on the command line, by key.
    var flags: [ConfigurationKey: String] {
        let all: [ConfigurationKey: String?] = [
            .appIDs: appIds, .issuers: issuers, .jwksURLs: jwksUrls, .jwksFile: jwksFile, .caFile: caFile,
            .jwksTTLSeconds: jwksTtlSeconds, .jwksMinimumTTLSeconds: jwksMinimumTtlSeconds,
            .jwksMaximumTTLSeconds: jwksMaximumTtlSeconds, .jwksMaxStaleSeconds: jwksMaxStaleSeconds,
            .listen: listen, .listenMode: listenMode, .adminListen: adminListen, .workers: workers,
            .clockSkewSeconds: clockSkewSeconds,
            .maxTokenAgeSeconds: maxTokenAgeSeconds, .binding: binding, .tracking: tracking,
            .clientKeysFile: clientKeysFile, .tlsCertificateFile: tlsCertificateFile, .tlsKeyFile: tlsKeyFile,
            .tlsClientCAFile: tlsClientCaFile, .gateway: gateway, .drainDelaySeconds: drainDelaySeconds,
            .nonceSecretFile: nonceSecretFile, .nonceTTLSeconds: nonceTtlSeconds, .replay: replay,
            .replayStore: replayStore, .replayStorePasswordFile: replayStorePasswordFile,
            .replayStoreCapacity: replayStoreCapacity, .appSecretsFile: appSecretsFile, .graphURL: graphUrl,
            .graphVersion: graphVersion, .uninstallURL: uninstallUrl, .logLevel: logLevel, .logFormat: logFormat,
        ]
        return all.compactMapValues { $0 }
    }

    /// Loads the configuration from these flags, this process's environment and the file.
    func load() throws(ConfigurationError) -> LoadedConfiguration {
        try ConfigurationLoader.load(
            flags: flags,
            environment: ProcessInfo.processInfo.environment,
            file: file
        )
    }
}

extension ArgumentHelp {
    /// The key's own sentence and default.
    fileprivate static func key(_ key: ConfigurationKey) -> ArgumentHelp {
        ArgumentHelp("\(key.summary) (default: \(key.defaultText))", valueName: "value")
    }
}
