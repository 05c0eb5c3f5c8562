package import Graph
package import Networking
package import ReplayStores

/// Everything the service is told from outside, judged and typed.
///
/// Made by ``ConfigurationLoader``; the keys, their bounds and their meanings are in ``ConfigurationKey``.
package struct ServiceConfiguration: Sendable, Equatable {
    /// The Facebook app ids whose tokens are accepted; never empty.
    package var appIDs: [String]
    /// The issuers accepted, compared exactly.
    package var issuers: [String]
    /// Where the JWK Set is fetched, in order.
    package var jwksURLs: [String]
    /// A file that seeds the key cache and is rewritten after each good fetch.
    package var jwksFile: String?
    /// Certificates to trust instead of the system's, PEM.
    package var caFile: String?
    /// Time to live of the keys when the answer names none, in seconds.
    package var jwksTTLSeconds: Int
    /// Least time to live, in seconds.
    package var jwksMinimumTTLSeconds: Int
    /// Greatest time to live, in seconds.
    package var jwksMaximumTTLSeconds: Int
    /// How long past expiry the last good keys serve, in seconds.
    package var jwksMaxStaleSeconds: Int
    /// The service's listener.
    package var listen: ListenAddress
    /// The permissions of its file, where it is a Unix socket.
    package var listenMode: UnixSocketMode
    /// The administrative listener.
    package var adminListen: SocketAddress
    /// Number of event loops; nil means one for each core this process may use.
    package var workers: Int?
    /// Forgiven difference between the clocks, in seconds.
    package var clockSkewSeconds: Int
    /// Greatest age of a token since `iat`, in seconds; nil means none.
    package var maxTokenAgeSeconds: Int?
    /// Whether a token must be bound to a login.
    package var bindingIsRequired: Bool
    /// Whether only tokens without an access token are accepted.
    package var onlyLimitedTracking: Bool
    /// The file of the callers that may use the service; nil when anybody may.
    package var clientKeysFile: String?
    /// The files with which the service's listener speaks TLS; nil where it speaks plain HTTP.
    package var tls: TLSFiles?
    /// Whether the routes for gateways answer.
    package var gatewayIsEnabled: Bool
    /// The file of the secrets under which nonces are issued; nil where none are.
    package var nonceSecretFile: String?
    /// The life of an issued nonce, in seconds.
    package var nonceTTLSeconds: Int
    /// Whether a token is accepted once.
    package var replaysAreRejected: Bool
    /// The server that remembers what was used; nil where this process does.
    package var replayStore: ReplayStoreURL?
    /// The file of that server's password.
    package var replayStorePasswordFile: String?
    /// How much this process remembers.
    package var replayStoreCapacity: Int
    /// The file of the apps' secrets; nil where nothing is asked of Graph.
    package var appSecretsFile: String?
    /// Where Graph is.
    package var graph: GraphConfiguration
    /// How long the listeners stay open after SIGTERM, in seconds.
    package var drainDelaySeconds: Int
    /// The least severity that is logged, by its swift-log name.
    package var logLevel: String
    /// `json`, `text`, or nil: text on a terminal, else JSON.
    package var logFormat: String?
}

extension ServiceConfiguration {
    /// Judges the settings of every key, and what they mean together.
    package init(settings: [ConfigurationKey: ConfigurationSetting]) throws(ConfigurationError) {
        let reader = SettingReader(settings: settings)
        guard let appIDs = try reader.list(.appIDs), !appIDs.isEmpty else {
            throw ConfigurationError(
                place: ConfigurationKey.appIDs.environmentName,
                reason: "no app id is configured; set it to your Facebook app id (or pass --app-ids)"
            )
        }
        self.appIDs = try reader.appIDs(appIDs)
        issuers = try reader.list(.issuers) ?? ["https://www.facebook.com", "https://facebook.com"]
        jwksURLs =
            try reader.urls(.jwksURLs) ?? [
                "https://limited.facebook.com/.well-known/oauth/openid/jwks/",
                "https://www.facebook.com/.well-known/oauth/openid/jwks/",
            ]
        jwksFile = try reader.text(.jwksFile)
        caFile = try reader.text(.caFile)
        jwksTTLSeconds = try reader.integer(.jwksTTLSeconds) ?? 3600
        jwksMinimumTTLSeconds = try reader.integer(.jwksMinimumTTLSeconds) ?? 300
        jwksMaximumTTLSeconds = try reader.integer(.jwksMaximumTTLSeconds) ?? 86_400
        jwksMaxStaleSeconds = try reader.integer(.jwksMaxStaleSeconds) ?? 86_400
        listen = try reader.listenAddress() ?? .loopback(port: 8080)
        listenMode = try reader.listenMode(of: listen) ?? .standard
        adminListen = try reader.adminListenAddress() ?? .loopback(port: 8081)
        workers = try reader.integer(.workers)
        clockSkewSeconds = try reader.integer(.clockSkewSeconds) ?? 60
        maxTokenAgeSeconds = try reader.integer(.maxTokenAgeSeconds)
        bindingIsRequired = try reader.choice(.binding) != "optional"
        onlyLimitedTracking = try reader.choice(.tracking) == "limited"
        clientKeysFile = try reader.text(.clientKeysFile)
        tls = try reader.tlsFiles()
        gatewayIsEnabled = try reader.choice(.gateway) == "enabled"
        nonceSecretFile = try reader.text(.nonceSecretFile)
        nonceTTLSeconds = try reader.integer(.nonceTTLSeconds) ?? 600
        replaysAreRejected = try reader.choice(.replay) == "reject"
        replayStore = try reader.replayStore()
        replayStorePasswordFile = try reader.text(.replayStorePasswordFile)
        replayStoreCapacity = try reader.integer(.replayStoreCapacity) ?? ReplayLimits.defaultCapacity
        appSecretsFile = try reader.text(.appSecretsFile)
        graph = try reader.graph()
        drainDelaySeconds = try reader.integer(.drainDelaySeconds) ?? 0
        logLevel = try reader.choice(.logLevel) ?? "info"
        logFormat = try reader.choice(.logFormat)
        try requireConsistency(reader)
    }

    private func requireConsistency(_ reader: SettingReader) throws(ConfigurationError) {
        guard jwksMinimumTTLSeconds <= jwksMaximumTTLSeconds else {
            throw ConfigurationError(
                place: reader.place(.jwksMinimumTTLSeconds),
                reason: "the least time to live (\(jwksMinimumTTLSeconds) s) is above the greatest "
                    + "(\(jwksMaximumTTLSeconds) s)"
            )
        }
        try requireConsistentStore(reader)
        guard listen.network?.port == 0 || listen.network != adminListen else {
            throw ConfigurationError(
                place: reader.place(.adminListen),
                reason: "the administrative listener has the service's own address \(listen)"
            )
        }
    }

    private func requireConsistentStore(_ reader: SettingReader) throws(ConfigurationError) {
        guard replayStorePasswordFile != nil else { return }
        guard let replayStore else {
            throw ConfigurationError(
                place: reader.place(.replayStorePasswordFile),
                reason:
                    "the store in memory has no password; set \(ConfigurationKey.replayStore.rawValue) to a redis:// URL"
            )
        }
        guard replayStore.password == nil else {
            throw ConfigurationError(
                place: reader.place(.replayStorePasswordFile),
                reason: "the URL in \(ConfigurationKey.replayStore.rawValue) has a password already"
            )
        }
    }
}
