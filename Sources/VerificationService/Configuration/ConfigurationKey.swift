internal import Graph
internal import ReplayStores

/// Every setting of the service, and the one source of truth about each: the file's member name is the raw value,
/// the environment variable and the flag are derived from it, and `config/README.md` is compared with this table by
/// a test.
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
    case clockSkewSeconds = "clock_skew_seconds"
    case maxTokenAgeSeconds = "max_token_age_seconds"
    case binding = "binding"
    case tracking = "tracking"
    case clientKeysFile = "client_keys_file"
    case tlsCertificateFile = "tls_certificate_file"
    case tlsKeyFile = "tls_key_file"
    case tlsClientCAFile = "tls_client_ca_file"
    case gateway = "gateway"
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
    case drainDelaySeconds = "drain_delay_seconds"
    case logLevel = "log_level"
    case logFormat = "log_format"

    /// What every environment variable of the service starts with. A variable with this prefix that is no key's is
    /// refused, so that a misspelt one cannot pass for a default.
    package static let environmentPrefix = "LIMITED_LOGIN_"

    /// The variable that names the configuration file; the only one that is no key.
    package static let fileVariable = "LIMITED_LOGIN_CONFIG"

    /// The environment variable, such as `LIMITED_LOGIN_APP_IDS`.
    package var environmentName: String { Self.environmentPrefix + rawValue.uppercased() }

    /// The long flag without its dashes, such as `app-ids`.
    package var flagName: String { String(rawValue.map { $0 == "_" ? "-" : $0 }) }

    /// The value as it may be shown: what is secret in it is left out.
    package func shown(_ value: String) -> String {
        guard self == .replayStore, let url = try? ReplayStoreURL(parsing: value) else { return value }
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

/// What a key's value looks like, and what bounds it.
package enum ConfigurationKind: Sendable, Equatable {
    /// Strings; separated by commas in flags and the environment, an array in the file.
    case list
    /// One string.
    case text
    /// A whole number within a range.
    case integer(ClosedRange<Int>)
    /// A time in whole seconds within a range; a number, or one with its unit: `90s`, `5m`, `1h`, `2d`.
    case duration(ClosedRange<Int>)
    /// One of a few words.
    case choice([String])
}

extension ConfigurationKind {
    /// The bounds of a number or a time; nil for other kinds.
    var range: ClosedRange<Int>? {
        switch self {
        case .integer(let range), .duration(let range): range
        case .list, .text, .choice: nil
        }
    }
}

extension ConfigurationKey {
    /// The shape and the bounds of the value.
    package var kind: ConfigurationKind {
        switch self {
        case .appIDs, .issuers, .jwksURLs: .list
        case .jwksFile, .caFile, .clientKeysFile, .listen, .listenMode, .adminListen: .text
        case .tlsCertificateFile, .tlsKeyFile, .tlsClientCAFile: .text
        case .nonceSecretFile, .replayStore, .replayStorePasswordFile: .text
        case .nonceTTLSeconds: .duration(1...86_400)
        case .replay: .choice(["accept", "reject"])
        case .replayStoreCapacity: .integer(1_000...10_000_000)
        case .appSecretsFile, .graphURL, .graphVersion, .uninstallURL: .text
        case .jwksTTLSeconds, .jwksMinimumTTLSeconds, .jwksMaximumTTLSeconds: .duration(1...604_800)
        case .jwksMaxStaleSeconds: .duration(0...604_800)
        case .workers: .integer(1...256)
        case .clockSkewSeconds: .duration(0...300)
        case .maxTokenAgeSeconds: .duration(1...31_536_000)
        case .drainDelaySeconds: .duration(0...300)
        case .binding: .choice(["required", "optional"])
        case .tracking: .choice(["any", "limited"])
        case .gateway: .choice(["disabled", "enabled"])
        case .logLevel: .choice(["trace", "debug", "info", "notice", "warning", "error", "critical"])
        case .logFormat: .choice(["json", "text"])
        }
    }

    /// The default as a person reads it in the help text and on the configuration page.
    package var defaultText: String {
        switch self {
        case .appIDs: "none: required"
        case .issuers: "https://www.facebook.com,https://facebook.com"
        case .jwksURLs:
            "https://limited.facebook.com/.well-known/oauth/openid/jwks/,"
                + "https://www.facebook.com/.well-known/oauth/openid/jwks/"
        case .jwksFile: "none"
        case .caFile: "the system's trust store"
        case .jwksTTLSeconds: "3600"
        case .jwksMinimumTTLSeconds: "300"
        case .jwksMaximumTTLSeconds: "86400"
        case .jwksMaxStaleSeconds: "86400"
        case .listen: "127.0.0.1:8080"
        case .listenMode: "0660"
        case .adminListen: "127.0.0.1:8081"
        case .workers: "the cores this process may use"
        case .clockSkewSeconds: "60"
        case .maxTokenAgeSeconds: "none"
        case .binding: "required"
        case .tracking: "any"
        case .clientKeysFile: "none: anybody who reaches the listener may call"
        case .tlsCertificateFile: "none: plain HTTP"
        case .tlsKeyFile: "none"
        case .tlsClientCAFile: "none: no client certificate is asked for"
        case .gateway: "disabled"
        case .nonceSecretFile: "none: no nonces are issued"
        case .nonceTTLSeconds: "600"
        case .replay: "accept"
        case .replayStore: "memory"
        case .replayStorePasswordFile: "none"
        case .replayStoreCapacity: "100000"
        case .appSecretsFile: "none: the routes for permissions are 404"
        case .graphURL: GraphConfiguration.standardURL
        case .graphVersion: GraphConfiguration.standardVersion
        case .uninstallURL: GraphConfiguration.standardUninstallURL
        case .drainDelaySeconds: "0"
        case .logLevel: "info"
        case .logFormat: "text on a terminal, else json"
        }
    }

    /// One sentence on what the key is for.
    package var summary: String {
        switch self {
        case .appIDs: "The Facebook app ids whose tokens are accepted (the claim aud must be one of them)."
        case .issuers: "The issuers accepted in the claim iss, compared exactly."
        case .jwksURLs: "Where the issuer's JWK Set is fetched, in order; https, or http on a loopback address."
        case .jwksFile: "A file that seeds the key cache at start and is rewritten after each good fetch."
        case .caFile: "Certificates (PEM) to trust instead of the system's, for the fetch and a rediss:// store."
        case .jwksTTLSeconds: "How long keys stay fresh when the answer names no max-age."
        case .jwksMinimumTTLSeconds: "The least time to live, whatever the answer's max-age says."
        case .jwksMaximumTTLSeconds: "The greatest time to live, whatever the answer's max-age says."
        case .jwksMaxStaleSeconds:
            "How long past their expiry the last good keys keep verifying while the source is down."
        case .listen: "Address and port of the service, HOST:PORT (port 0 takes a free one), or unix:/PATH."
        case .listenMode: "Permissions of the socket's file where listen is unix:/PATH: octal, 0600 to 0777."
        case .adminListen: "Address and port of the administrative listener (health), HOST:PORT."
        case .workers: "How many event loops serve requests."
        case .clockSkewSeconds: "The difference between our clock and the issuer's that is forgiven."
        case .maxTokenAgeSeconds: "The greatest age of a token since its claim iat."
        case .binding: "Whether each token must be tied to a login by nonce, raw_nonce or subject."
        case .tracking: "Whether tokens that came with an access token (tracking enabled) are accepted."
        case .clientKeysFile: "A file of the callers' names and the SHA-256 of their keys; without a key, 401."
        case .tlsCertificateFile: "The certificate chain (PEM) with which the service's listener speaks TLS."
        case .tlsKeyFile: "The private key (PEM) of the certificate."
        case .tlsClientCAFile: "Authorities (PEM) of the callers' certificates; without one, no handshake."
        case .gateway: "Whether /auth answers gateways; the bearer tokens it judges are tied to no login."
        case .nonceSecretFile: "A file of one or two secrets: the first issues nonces, both recognise them."
        case .nonceTTLSeconds: "How long an issued nonce is good."
        case .replay: "Whether POST /verify accepts a token (its claim jti) again, or only once."
        case .replayStore: "Where used nonces and tokens are remembered: memory, or redis:// or rediss:// for replicas."
        case .replayStorePasswordFile: "A file with the password of the Redis server, instead of one in its URL."
        case .replayStoreCapacity: "How many used nonces and tokens are remembered in memory; beyond that, 503."
        case .appSecretsFile: "A file of the apps' ids and secrets, with which Graph is asked for permissions."
        case .graphURL: "Where Facebook's Graph API is; https, or http on a loopback address."
        case .graphVersion: "The version of the Graph API, such as v26.0."
        case .uninstallURL: "Where Limited Login uninstalls an app; https, or http on a loopback address."
        case .drainDelaySeconds: "How long the listeners stay open after SIGTERM, while readiness already fails."
        case .logLevel: "The least severity that is logged."
        case .logFormat: "Whether log lines are JSON objects or text."
        }
    }
}
