package import LLGraph
package import LLHTTPClient
internal import LLHTTPServer
package import LLSockets
package import LLStores
package import LimitedLogin

/// The whole configuration of the service, checked and typed.
///
/// ``ConfigurationLoader`` makes it. Each member is the setting of the same name, or nil if the setting has no value.
/// The bounds, defaults and meanings are in ``ConfigurationKey``.
package struct ServiceConfiguration: Sendable, Equatable {
    /// Never empty if the command is about tokens.
    package var appIDs: [String]
    package var issuers: [String]
    package var jwksURLs: [String]
    package var jwksFile: String?
    package var caFile: String?
    package var jwksTTLSeconds: Int
    package var jwksMinimumTTLSeconds: Int
    package var jwksMaximumTTLSeconds: Int
    package var jwksMaxStaleSeconds: Int
    package var listen: ListenAddress
    package var listenMode: UnixSocketMode
    package var adminListen: SocketAddress
    package var workers: Int?
    /// The limit in the configuration; a smaller limit of the process's control group takes precedence.
    package var memoryLimitBytes: Int
    package var idleTimeoutSeconds: Int
    package var clockSkewSeconds: Int
    package var maxTokenAgeSeconds: Int?
    /// True if a token must be bound to a login.
    package var bindingIsRequired: Bool
    /// True if only tokens without an access token are accepted.
    package var onlyLimitedTracking: Bool
    package var accessTokensAreAccepted: Bool
    package var clientKeysFile: String?
    package var tls: TLSFiles?
    package var trustedPeers: [AddressPrefix]
    /// The settings of the gateway routes; nil if these are closed.
    package var gateway: GatewaySettings?
    /// The wanted number; ``signaturesPerWorker`` is the number that fits into memory.
    package var signatureCacheEntries: Int
    package var nonceSecretFile: String?
    package var nonceTTLSeconds: Int
    package var replaysAreRejected: Bool
    /// The server that remembers used nonces, tokens and proofs; nil if this process does.
    package var replayStore: ReplayStoreURL?
    package var replayStorePasswordFile: String?
    package var replayStoreSentinelPasswordFile: String?
    package var replayStoreCapacity: Int
    package var appSecretsFile: String?
    package var graph: GraphConfiguration
    /// The webhook for Facebook's callbacks; nil if there is none.
    package var webhook: WebhookConfiguration?
    /// The settings for issuing tokens; nil if the service issues none.
    package var tokens: TokenConfiguration?
    package var drainDelaySeconds: Int
    /// The level's swift-log name.
    package var logLevel: String
    package var logFormat: String?
    package var auditIsOn: Bool
    /// The settings as values, given or default, for code that iterates over all of them.
    package private(set) var values: [ConfigurationKey: ConfigurationValue] = [:]
    /// The configuration file, if it holds the password of ``replayStore``.
    private(set) var fileWithPassword: String?
}

/// The PEM files of a listener that speaks TLS.
package struct TLSFiles: Sendable, Equatable {
    /// The server's certificate, followed by the chain up to its authority.
    package let certificate: String
    /// The certificate's private key, not encrypted.
    package let key: String
    /// The authorities of the callers' certificates; nil if callers need none.
    package let clientAuthorities: String?
}

package struct TokenConfiguration: Sendable, Equatable {
    package let policy: TokenIssuerPolicy
    package let signingKeysFile: String
}

package struct WebhookConfiguration: Sendable, Equatable {
    package let url: HTTPURL
    package let secretFile: String
    /// The page that shows people the state of a data deletion; without a query.
    package let statusURL: HTTPURL
}

extension ServiceConfiguration {
    /// - Parameter only: The settings that were read; nil for all. The others have their defaults and are not checked.
    package init(
        settings: [ConfigurationKey: ConfigurationSetting],
        only: [ConfigurationKey]? = nil
    ) throws(ConfigurationError) {
        let reader = SettingReader(settings: settings)
        appIDs = only?.contains(.appIDs) == false ? [] : try reader.appIDs()
        issuers = try reader.issuers()
        jwksURLs = try reader.urls(.jwksURLs)
        jwksFile = try reader.optionalText(.jwksFile)
        caFile = try reader.optionalText(.caFile)
        jwksTTLSeconds = try reader.number(.jwksTTLSeconds)
        jwksMinimumTTLSeconds = try reader.number(.jwksMinimumTTLSeconds)
        jwksMaximumTTLSeconds = try reader.number(.jwksMaximumTTLSeconds)
        jwksMaxStaleSeconds = try reader.number(.jwksMaxStaleSeconds)
        listen = try reader.listenAddress()
        listenMode = try reader.listenMode(of: listen)
        adminListen = try reader.adminListenAddress()
        workers = try reader.optionalNumber(.workers)
        memoryLimitBytes = try reader.number(.memoryLimit)
        idleTimeoutSeconds = try reader.number(.idleTimeoutSeconds)
        clockSkewSeconds = try reader.number(.clockSkewSeconds)
        maxTokenAgeSeconds = try reader.optionalNumber(.maxTokenAgeSeconds)
        bindingIsRequired = try reader.text(.binding) == "required"
        onlyLimitedTracking = try reader.text(.tracking) == "limited"
        accessTokensAreAccepted = try reader.text(.accessTokens) == "accept"
        clientKeysFile = try reader.optionalText(.clientKeysFile)
        tls = try reader.tlsFiles()
        trustedPeers = try reader.addressPrefixes(.trustedPeers)
        gateway = try reader.gateway()
        signatureCacheEntries = try reader.number(.signatureCacheEntries)
        nonceSecretFile = try reader.optionalText(.nonceSecretFile)
        nonceTTLSeconds = try reader.number(.nonceTTLSeconds)
        replaysAreRejected = try reader.text(.replay) == "reject"
        replayStore = try reader.replayStore()
        if case .file(let path, _)? = settings[.replayStore]?.origin, replayStore?.password != nil {
            fileWithPassword = path
        }
        replayStorePasswordFile = try reader.optionalText(.replayStorePasswordFile)
        replayStoreSentinelPasswordFile = try reader.optionalText(.replayStoreSentinelPasswordFile)
        replayStoreCapacity = try reader.number(.replayStoreCapacity)
        appSecretsFile = try reader.optionalText(.appSecretsFile)
        graph = try reader.graph()
        webhook = try reader.webhook()
        tokens = try reader.tokens(except: issuers)
        drainDelaySeconds = try reader.number(.drainDelaySeconds)
        logLevel = try reader.text(.logLevel)
        logFormat = try reader.optionalText(.logFormat)
        auditIsOn = try reader.text(.auditLog) == "on"
        for key in ConfigurationKey.allCases { values[key] = reader.value(key) }
        try requireConsistency(reader)
        guard only != nil || listen.network?.collides(with: adminListen) != true else {
            throw reader.failure(
                .adminListen,
                "the administrative listener has the service's own address \(listen); give one of them another port",
                beside: .listen
            )
        }
    }

    private func requireConsistency(_ reader: SettingReader) throws(ConfigurationError) {
        guard jwksMinimumTTLSeconds <= jwksMaximumTTLSeconds else {
            throw reader.failure(
                .jwksMinimumTTLSeconds,
                "the least time to live (\(jwksMinimumTTLSeconds) s) is above the greatest (\(jwksMaximumTTLSeconds) s)"
            )
        }
        guard (jwksMinimumTTLSeconds...jwksMaximumTTLSeconds).contains(jwksTTLSeconds) else {
            let unit = ConfigurationKey.jwksTTLSeconds.definition.kind.withUnit
            throw reader.failure(
                .jwksTTLSeconds,
                "\(unit(jwksTTLSeconds)) is outside \(unit(jwksMinimumTTLSeconds)) to \(unit(jwksMaximumTTLSeconds)), which "
                    + "jwks_minimum_ttl_seconds and jwks_maximum_ttl_seconds allow"
            )
        }
        if replayStorePasswordFile != nil {
            guard let replayStore else {
                throw reader.failure(
                    .replayStorePasswordFile,
                    "the store in memory has no password; set \(ConfigurationKey.replayStore.rawValue) to a redis:// URL",
                    beside: .replayStore
                )
            }
            guard replayStore.password == nil else {
                throw reader.failure(
                    .replayStorePasswordFile,
                    "the URL in \(ConfigurationKey.replayStore.rawValue) has a password already",
                    beside: .replayStore
                )
            }
        }
        if replayStoreSentinelPasswordFile != nil {
            guard case .sentinel? = replayStore?.kind else {
                throw reader.failure(
                    .replayStoreSentinelPasswordFile,
                    "\(ConfigurationKey.replayStore.rawValue) names no sentinels: set it to a redis+sentinel:// URL",
                    beside: .replayStore
                )
            }
        }
        guard !accessTokensAreAccepted || appSecretsFile != nil else {
            throw reader.failure(
                .accessTokens,
                "Graph is asked about access tokens with the app's secret: set \(ConfigurationKey.appSecretsFile.rawValue)",
                beside: .appSecretsFile
            )
        }
        let greatestIdleTimeout = HTTPServerLimits.greatestVerifiedIdleTimeout
        guard tls?.clientAuthorities == nil || .seconds(idleTimeoutSeconds) <= greatestIdleTimeout else {
            throw reader.failure(
                .idleTimeoutSeconds,
                "with \(ConfigurationKey.tlsClientCAFile.rawValue) a connection lives five minutes at most, "
                    + "so it is idle for \(greatestIdleTimeout.components.seconds) s at most",
                beside: .tlsClientCAFile
            )
        }
    }
}

extension ServiceConfiguration {
    /// The number of workers of the service's listener.
    package var workerCount: Int { workers ?? ProcessLimits.processorCount() }

    /// The number of good signatures that each worker remembers.
    package var signaturesPerWorker: Int {
        VerifiedSignatureCache.capacity(
            wanted: signatureCacheEntries,
            workers: workerCount,
            memory: ProcessLimits.memory(of: memoryLimitBytes)
        )
    }

    /// The reason why a reload may not replace another configuration by this one; nil if it may.
    package func refusal(after old: ServiceConfiguration) -> String? {
        ConfigurationKey.allCases.lazy.compactMap { key in
            key.definition.reload.refusal(key, from: old.values[key], to: values[key])
        }.first
    }
}
