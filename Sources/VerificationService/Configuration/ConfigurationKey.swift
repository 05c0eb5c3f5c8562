internal import LoginStores

/// Every setting of the service: the raw value is its name in the file, the environment variable and the flag are derived
/// from it, and ``definition`` is the one table of all the rest.
package enum ConfigurationKey: String, CaseIterable, Sendable {
    case appIDs = "app_ids"
    case issuers = "issuers"
    case jwksURLs = "jwks_urls"
    case jwksFile = "jwks_file"
    case caFile = "ca_file"
    case jwksTTLSeconds = "jwks_ttl_seconds"
    case jwksMinimumTTLSeconds = "jwks_minimum_ttl_seconds"
    case jwksMaximumTTLSeconds = "jwks_maximum_ttl_seconds"
    case jwksMaxStaleSeconds = "jwks_max_stale_seconds"
    case listen = "listen"
    case listenMode = "listen_mode"
    case adminListen = "admin_listen"
    case workers = "workers"
    case memoryLimit = "memory_limit"
    case clockSkewSeconds = "clock_skew_seconds"
    case maxTokenAgeSeconds = "max_token_age_seconds"
    case binding = "binding"
    case tracking = "tracking"
    case accessTokens = "access_tokens"
    case clientKeysFile = "client_keys_file"
    case tlsCertificateFile = "tls_certificate_file"
    case tlsKeyFile = "tls_key_file"
    case tlsClientCAFile = "tls_client_ca_file"
    case trustedPeers = "trusted_peers"
    case gateway = "gateway"
    case gatewayOrigin = "gateway_origin"
    case dpop = "dpop"
    case authHeaders = "auth_headers"
    case signatureCacheEntries = "signature_cache_entries"
    case nonceSecretFile = "nonce_secret_file"
    case nonceTTLSeconds = "nonce_ttl_seconds"
    case replay = "replay"
    case replayStore = "replay_store"
    case replayStorePasswordFile = "replay_store_password_file"
    case replayStoreCapacity = "replay_store_capacity"
    case appSecretsFile = "app_secrets_file"
    case graphURL = "graph_url"
    case graphVersion = "graph_version"
    case uninstallURL = "uninstall_url"
    case callbacksURL = "callbacks_url"
    case callbacksSecretFile = "callbacks_secret_file"
    case dataDeletionStatusURL = "data_deletion_status_url"
    case drainDelaySeconds = "drain_delay_seconds"
    case logLevel = "log_level"
    case logFormat = "log_format"
    case auditLog = "audit_log"

    /// What every environment variable of the service starts with. A variable with this prefix that is no key's is
    /// refused, so that a misspelt one cannot pass for a default.
    package static let environmentPrefix = "LIMITED_LOGIN_"

    /// The variable that names the configuration file; the only one that is no key.
    package static let fileVariable = "LIMITED_LOGIN_CONFIG"

    /// The environment variable, such as `LIMITED_LOGIN_APP_IDS`.
    package var environmentName: String { Self.environmentPrefix + rawValue.uppercased() }

    /// The long flag without its dashes, such as `app-ids`.
    package var flagName: String { String(rawValue.map { $0 == "_" ? "-" : $0 }) }

    /// The default as a person reads it.
    package var defaultText: String {
        switch definition.standard {
        case .value(let value): definition.kind.text(of: value)
        case .nothing(let meaning): meaning
        }
    }

    /// The value as it may be shown: what is secret in it is left out.
    package func shown(_ value: ConfigurationValue) -> String {
        let text = definition.kind.text(of: value)
        guard self == .replayStore, let url = try? ReplayStoreURL(parsing: text) else { return text }
        switch (url.user.isEmpty, url.password == nil) {
        case (true, true): return url.shown
        case (false, true): return "\(url.shown) with a user"
        case (_, false): return "\(url.shown) with a password"
        }
    }

    /// The key of an environment variable's name.
    package init?(environmentName: String) {
        guard let key = Self.allCases.first(where: { $0.environmentName == environmentName }) else { return nil }
        self = key
    }
}
