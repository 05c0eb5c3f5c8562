internal import Glibc
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

extension ServiceConfiguration {
    /// Warnings, one sentence each, about accepted settings that may be a mistake. They are not errors: a refusal could
    /// lock people out if there is no mistake.
    ///
    /// It checks the permissions of the files with secrets.
    package var warnings: [String] {
        var warnings: [String] = []
        if let odd = appIDs.first(where: { !$0.utf8.allSatisfy { (0x30...0x39).contains($0) } }) {
            warnings.append(
                "The app id '\(odd)' is no decimal number, as Facebook's are: no token of Facebook's is for it."
            )
        }
        if let odd = issuers.first(where: { $0.hasSuffix("/") }) {
            warnings.append(
                "The issuer '\(odd)' ends with a slash: issuers are compared byte by byte, and Facebook's have none there."
            )
        }
        // The pair is not refused: an app with Limited Login on iPhones and another login on Android needs both.
        if onlyLimitedTracking, accessTokensAreAccepted {
            warnings.append(
                "tracking: limited is about id tokens alone: with access_tokens: accept a login with tracking is accepted by its "
                    + "access token."
            )
        }
        if !bindingIsRequired {
            warnings.append(
                "binding is optional: a backend that sends neither nonce nor subject takes a token that was stolen, or "
                    + "made for another login."
            )
        }
        warnings += callerWarnings + gatewayWarnings
        if let replayStore, !replayStore.isSecure, !replayStore.isLoopbackHost,
            replayStore.password != nil || replayStorePasswordFile != nil || replayStoreSentinelPasswordFile != nil
        {
            warnings.append(
                "The password of replay_store goes over the network in the clear to \(replayStore.host): use \(replayStore.secureScheme)."
            )
        }
        let fitting = signaturesPerWorker
        // With many cores the default may exceed the memory, but the operator did not set it.
        if fitting < signatureCacheEntries, signatureCacheEntries != VerifiedSignatureCache.defaultCapacity {
            warnings.append(
                "signature_cache_entries is \(signatureCacheEntries), and memory_limit leaves room for \(fitting) "
                    + "in each of \(workerCount) workers: so many are remembered."
            )
        }
        if webhook != nil, appSecretsFile == nil {
            warnings.append("callbacks_url is set and app_secrets_file is not: Facebook's callbacks are 404.")
        }
        for key in [ConfigurationKey.callbacksSecretFile, .dataDeletionStatusURL]
        where webhook == nil && values[key] != nil {
            warnings.append("\(key.rawValue) is set and callbacks_url is not: the backend is told of no callback.")
        }
        for key in [
            ConfigurationKey.signingKeysFile, .tokenAudiences, .tokenClaims, .tokenExtraClaims, .tokenTypeHeader,
            .tokenLifetimeSeconds,
        ] where tokens == nil && hasOwnValue(key) {
            warnings.append("\(key.rawValue) is set and issuer is not: no tokens are issued.")
        }
        for key in ConfigurationKey.allCases where key.definition.kind == .secretFile {
            guard case .text(let path) = values[key] else { continue }
            warnings += Self.looseness(of: path, key.rawValue)
        }
        if let fileWithPassword { warnings += Self.looseness(of: fileWithPassword, "the password in replay_store") }
        return warnings
    }

    /// Warnings about access to the service, and the rate of calls.
    private var callerWarnings: [String] {
        var warnings: [String] = []
        let isOpen = clientKeysFile == nil && tls?.clientAuthorities == nil
        if isOpen, let address = listen.network, !address.isLoopback {
            warnings.append(
                "The listener \(address) is open to anybody who can reach it: "
                    + "neither client_keys_file nor tls_client_ca_file is set."
            )
        }
        if isOpen, listen.network == nil, listenMode.isForEverybody {
            warnings.append(
                "The listener \(listen) is open to every user of this machine: listen_mode is \(listenMode), and "
                    + "client_keys_file is not set."
            )
        }
        if isOpen, accessTokensAreAccepted {
            warnings.append(
                "access_tokens is accept and client_keys_file is not set: anybody who can reach the listener can have the "
                    + "app ask Graph, which limits how often an app asks."
            )
        }
        if trustedPeers.contains(where: \.isEverything) {
            warnings.append(
                "trusted_peers names every address: one client may then take all connections. Name the gateway's."
            )
        }
        return warnings
    }

    /// Warnings about tokens bound to a key that pass a gateway (RFC 9449 section 7.2).
    private var gatewayWarnings: [String] {
        guard let gateway else {
            var warnings = [ConfigurationKey.gatewayOrigin, .authHeaders].filter(hasOwnValue).map {
                "\($0.rawValue) is set and gateway is not enabled: no route uses it."
            }
            if case .text(DPoPDemand.requiredIfBound.rawValue) = values[.dpop] {
                warnings.append("dpop is required_if_bound and gateway is not enabled: no route asks for a proof.")
            }
            return warnings
        }
        if gateway.dpop != .requiredIfBound {
            return [
                "gateway is enabled and dpop is \(gateway.dpop.rawValue): a token that is bound to a key passes as Bearer "
                    + "without a proof (RFC 9449 section 7.2). Set dpop to required_if_bound where your clients send proofs."
            ]
        }
        if gateway.origin == nil {
            return [
                "dpop is required_if_bound and gateway_origin is not set: scheme and host of a proof are compared with what "
                    + "the gateway says, so it must set X-Forwarded-Proto and X-Forwarded-Host itself."
            ]
        }
        return []
    }

    /// True if a setting has another value than its default.
    private func hasOwnValue(_ key: ConfigurationKey) -> Bool {
        guard case .value(let standard) = key.definition.standard else { return values[key] != nil }
        return values[key] != standard
    }

    /// Warnings about the permissions of a file with a secret; empty if they are good.
    ///
    /// A group may read a file that another user owns: the service itself reads it that way (root's file, mode 0640; a
    /// Kubernetes Secret with `fsGroup`).
    private static func looseness(of path: String, _ secret: String) -> [String] {
        var information = stat()
        guard unsafe stat(path, &information) == 0 else { return [] }
        let mode = information.st_mode & 0o777
        let groupBits: mode_t = information.st_uid == geteuid() ? 0o060 : 0o020
        guard mode & (groupBits | 0o006) != 0 else { return [] }
        let people = mode & 0o006 != 0 ? "Anybody on this machine" : "The file's group"
        let can = mode & 0o022 != 0 ? "change" : "read"
        return ["\(people) can \(can) \(secret): \(path) (mode 0\(String(mode, radix: 8))); give it 0600."]
    }
}
