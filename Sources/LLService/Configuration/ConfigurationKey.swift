internal import LLStores

/// Every setting of the service. The raw value is its name in the file; the environment variable and the flag are
/// derived from it. ``definition`` and ``summary`` are the tables of all other facts: `check-config`, the reload, the
/// configuration page and the manual page follow from them.
package enum ConfigurationKey: String, CaseIterable, Sendable {
    case appIDs = "app_ids"
    case issuers
    case jwksURLs = "jwks_urls"
    case jwksFile = "jwks_file"
    case caFile = "ca_file"
    case jwksTTLSeconds = "jwks_ttl_seconds"
    case jwksMinimumTTLSeconds = "jwks_minimum_ttl_seconds"
    case jwksMaximumTTLSeconds = "jwks_maximum_ttl_seconds"
    case jwksMaxStaleSeconds = "jwks_max_stale_seconds"
    case listen
    case listenMode = "listen_mode"
    case adminListen = "admin_listen"
    case workers
    case memoryLimit = "memory_limit"
    case idleTimeoutSeconds = "idle_timeout_seconds"
    case clockSkewSeconds = "clock_skew_seconds"
    case maxTokenAgeSeconds = "max_token_age_seconds"
    case binding
    case tracking
    case accessTokens = "access_tokens"
    case clientKeysFile = "client_keys_file"
    case tlsCertificateFile = "tls_certificate_file"
    case tlsKeyFile = "tls_key_file"
    case tlsClientCAFile = "tls_client_ca_file"
    case trustedPeers = "trusted_peers"
    case gateway
    case gatewayOrigin = "gateway_origin"
    case dpop
    case authHeaders = "auth_headers"
    case signatureCacheEntries = "signature_cache_entries"
    case nonceSecretFile = "nonce_secret_file"
    case nonceTTLSeconds = "nonce_ttl_seconds"
    case replay
    case replayStore = "replay_store"
    case replayStorePasswordFile = "replay_store_password_file"
    case replayStoreSentinelPasswordFile = "replay_store_sentinel_password_file"
    case replayStoreCapacity = "replay_store_capacity"
    case appSecretsFile = "app_secrets_file"
    case graphURL = "graph_url"
    case graphVersion = "graph_version"
    case uninstallURL = "uninstall_url"
    case callbacksURL = "callbacks_url"
    case callbacksSecretFile = "callbacks_secret_file"
    case dataDeletionStatusURL = "data_deletion_status_url"
    case issuer
    case signingKeysFile = "signing_keys_file"
    case tokenAudiences = "token_audiences"
    case tokenClaims = "token_claims"
    case tokenExtraClaims = "token_extra_claims"
    case tokenTypeHeader = "token_type_header"
    case tokenLifetimeSeconds = "token_lifetime_seconds"
    case drainDelaySeconds = "drain_delay_seconds"
    case logLevel = "log_level"
    case logFormat = "log_format"
    case auditLog = "audit_log"

    /// The prefix of every environment variable of the service. A variable with this prefix and an unknown name is
    /// refused, so that a misspelt one cannot pass for a default.
    package static let environmentPrefix = "LIMITED_LOGIN_"

    /// The variable that names the configuration file; the only one that is no key.
    package static let fileVariable = "LIMITED_LOGIN_CONFIG"

    /// The variable with the port to listen on, as Cloud Run, Heroku, Render and Fly set it.
    package static let portVariable = "PORT"

    /// True if Kubernetes made the variable, for a Service named `limited-login` or `limited-login-redis` (Kubernetes,
    /// "Accessing the Service").
    static func isServiceLink(_ name: String, _ value: String) -> Bool {
        let words = name.dropFirst(environmentPrefix.count).split(separator: "_", omittingEmptySubsequences: false)
        return words.indices.contains { start in
            let rest = Array(words[start...])
            if rest == ["SERVICE", "HOST"] || rest.starts(with: ["SERVICE", "PORT"]) { return true }
            if rest == ["PORT"] { return serviceProtocols.contains { value.hasPrefix("\($0.lowercased())://") } }
            return rest.count >= 3 && rest[0] == "PORT" && UInt16(rest[1]) != nil
                && serviceProtocols.contains(String(rest[2]))
        }
    }

    /// The protocols of a Service's ports (Kubernetes, "Protocols for Services").
    private static let serviceProtocols = ["TCP", "UDP", "SCTP"]

    /// The environment variable, such as `LIMITED_LOGIN_APP_IDS`.
    package var environmentName: String { Self.environmentPrefix + rawValue.uppercased() }

    /// The long flag without its dashes, such as `app-ids`.
    package var flagName: String { String(rawValue.map { $0 == "_" ? "-" : $0 }) }

    package var defaultText: String {
        switch definition.standard {
        case .value(let value): definition.kind.text(of: value)
        case .nothing(let meaning): meaning
        }
    }

    /// The value in the form that may be shown: its secret parts are left out.
    package func shown(_ value: ConfigurationValue) -> String {
        let text = definition.kind.text(of: value)
        guard self == .replayStore, let url = try? ReplayStoreURL(parsing: text) else { return text }
        guard url.password == nil else { return "\(url.shown) with a password" }
        return url.user.isEmpty ? url.shown : "\(url.shown) with a user"
    }
}

/// The form of a setting's value, and its bounds.
package enum ConfigurationKind: Sendable, Equatable {
    /// Strings; separated by commas in flags and the environment, an array in the file.
    case list
    case text
    case file
    /// The path of a file that only the service's user should read or write.
    case secretFile
    case integer(ClosedRange<Int>)
    /// A time in whole seconds within a range; a number, or one with its unit: `90s`, `5m`, `1h`, `2d`.
    case duration(ClosedRange<Int>)
    /// A size in bytes within a range; a number, or one with its unit: `KiB`, `MiB`, `GiB`, `TiB`.
    case size(ClosedRange<Int>)
    case choice([String])

    /// The bounds of a number, a time or a size; nil for other kinds.
    var range: ClosedRange<Int>? {
        switch self {
        case .integer(let range), .duration(let range), .size(let range): range
        case .list, .text, .file, .secretFile, .choice: nil
        }
    }

    /// The message for a value of another kind in the file, and the placeholder of the value in the usage.
    package var wording: (need: String, placeholder: String) {
        switch self {
        case .list: ("a list of strings is needed, as in [\"123\"]", "list")
        case .text: ("a string is needed", "text")
        case .file, .secretFile: ("a string is needed", "file")
        case .integer: ("a whole number without quotation marks is needed", "number")
        case .duration: ("a time is needed: 90, or \"90s\"", "time")
        case .size: ("a size is needed: \"64MiB\", or its bytes", "size")
        case .choice(let words):
            ("one of these strings is needed: \(words.joined(separator: ", "))", words.joined(separator: "|"))
        }
    }

    /// A value in the form for people.
    package func text(of value: ConfigurationValue) -> String {
        switch value {
        case .list(let values): values.joined(separator: ",")
        case .text(let text): text
        case .integer(let number):
            if case .size = self { withUnit(number) } else { String(number) }
        }
    }

    /// A number in the greatest unit that it is a multiple of.
    func withUnit(_ number: Int) -> String {
        guard let unit = units.last(where: { number % $0.size == 0 && number > 0 }) else { return String(number) }
        return "\(number / unit.size)\(unit.suffix)"
    }

    /// The units of a time or a size, from the least.
    var units: [(suffix: String, size: Int)] {
        switch self {
        case .duration: [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)]
        case .size: [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)]
        default: []
        }
    }
}

/// The value of a setting that is not set.
package enum ConfigurationDefault: Sendable, Equatable {
    case value(ConfigurationValue)
    /// No value, and the meaning of that.
    case nothing(String)

    static func list(_ values: [String]) -> Self { .value(.list(values)) }
    static func text(_ text: String) -> Self { .value(.text(text)) }
    static func number(_ number: Int) -> Self { .value(.integer(number)) }
    static func time(_ time: Duration) -> Self { .number(Int(clamping: time.components.seconds)) }
}

/// The effect of a reload (SIGHUP) on a setting.
package enum ConfigurationReload: String, Sendable, CaseIterable {
    /// The new value applies to all that begins after the reload.
    case takesEffect = "at once"
    /// The file is read again, under another name if it has one. A reload can neither add nor remove the file.
    case rereads = "content at once, on or off by a restart"
    /// The same, but a reload may add the file. It may not remove it, because the file guards the service.
    case guards = "content at once, taken away by a restart"
    case needsRestart = "by a restart"

    /// The reason why a reload may not make this change; nil if it may.
    func refusal(_ key: ConfigurationKey, from old: ConfigurationValue?, to new: ConfigurationValue?) -> String? {
        switch self {
        case .takesEffect: return nil
        case .rereads where (old == nil) == (new == nil): return nil
        case .needsRestart where old == new: return nil
        case .guards:
            guard old != nil, new == nil else { return nil }
            return "the reload would take away \(key.rawValue), which guards the service: that takes a restart"
        case .rereads, .needsRestart: return "a changed \(key.rawValue) takes effect with a restart alone"
        }
    }
}
