import Testing

@testable import LLService

/// A mistake in the settings, and words of the one sentence that names its cause and its remedy.
struct SettingMistake: Sendable {
    var flags: [String: String] = [:]
    var environment: [String: String] = [:]
    var file: String?
    /// True if the service starts all the same, with a warning.
    var isWarning = false
    let words: [String]

    /// Files, and words of the sentence.
    private static let files: [(String, String)] = [
        ("", "not valid JSON"), ("{", "not valid JSON"), ("[]", "one JSON object"), ("{} {}", "not valid JSON"),
        ("{} // comment", "not valid JSON"), (#"{"app_ids": ["1"],}"#, "no comma stands before a closing bracket"),
        (#"{"app_ids": ["1"], "app_ids": ["2"]}"#, "line 1, column 20: the member 'app_ids' comes twice"),
        (#"{"app_ids": ["1"], "\u0061pp_ids": ["2"]}"#, "comes twice"),
        ("{\n  \"workers\": 2,\n  // comment\n}", "line 3, column 3: the file is not valid JSON: a byte"),
        (#"{"app_ids": [123]}"#, "app_ids: the list may hold strings alone: write each in double quotes"),
        (#"{"app_ids": 123}"#, #"app_ids: a list of strings is needed, as in ["123"]"#),
        (#"{"workers": "2"}"#, "workers: a whole number without quotation marks is needed"),
        (#"{"workers": 2.5}"#, "workers: a whole number is needed"), (#"{"workers": 1e2}"#, "workers: a whole number"),
        (#"{"app_id": ["1"]}"#, "did you mean 'app_ids'?"), (#"{"listne": "127.0.0.1:1"}"#, "did you mean 'listen'?"),
        (#"{"colour": "red"}"#, "unknown key 'colour'"), (#"{"listen": 8080}"#, "listen: a string is needed"),
        (#"{"listen": "unix:/a", "listen_mode": 660}"#, "listen_mode: "), (#"{"listen": ""}"#, "listen: the value is"),
        (#"{"jwks_file": "a\u0000b"}"#, "jwks_file: the value holds a NUL byte"),
        (#"{"binding": false}"#, "binding: one"),
        (#"{"jwks_ttl_seconds": true}"#, "jwks_ttl_seconds: a time is needed"),
        (#"{"jwks_ttl_seconds": 1.5}"#, "jwks_ttl_seconds: "), (#"{"memory_limit": true}"#, "memory_limit: a size"),
        (#"{"memory_limit": 64}"#, "memory_limit: 64 is outside 16MiB to 1TiB"),
        (#"{"nonce_ttl_seconds": 0}"#, "nonce_ttl_seconds: 0 is outside 1s to "),
        (#"{"gateway": true}"#, "gateway: one of these strings is needed: disabled, enabled"),
        (#"{"gateway": "on"}"#, "gateway: 'on' is none of disabled, enabled"),
        (#"{"app_ids": []}"#, "no app id is configured"), ("{}", "no app id is configured"),
    ]

    /// Settings that do not go together, and words of the sentence.
    private static let (tls, webhook) = (SettingTests.tls, SettingTests.webhook)
    private static let conflicts: [([String: String], String)] = [
        (["listen_mode": "0660"], "--listen-mode: permissions have no meaning for 127.0.0.1:8080"),
        (["tls_certificate_file": "/a"], "--tls-certificate-file: set tls_key_file too"),
        (["tls_key_file": "/a"], "--tls-key-file: set tls_certificate_file too"),
        (["auth_headers": "X-A=sub,x-a=email"], "--auth-headers: two fields have the same name"),
        (["tls_client_ca_file": "/a"], "--tls-client-ca-file: client certificates need TLS"),
        (
            tls.merging(["tls_client_ca_file": "/a", "idle_timeout_seconds": "241"]) { $1 },
            "--idle-timeout-seconds: with tls_client_ca_file"
        ),
        (["replay_store": "redis://user:hunter2@127.0.0.1:6379"], "--replay-store: a password in a flag"),
        (["callbacks_url": "https://a.example/"], "--callbacks-url: set callbacks_secret_file and data_deletion"),
        (webhook.filter { $0.key != "callbacks_secret_file" }, "--callbacks-url: set callbacks_secret_file too"),
        (webhook.filter { $0.key != "data_deletion_status_url" }, "--callbacks-url: set data_deletion_status_url too"),
        (["issuer": "https://i.example"], "--issuer: set client_keys_file and signing_keys_file too"),
        (["jwks_minimum_ttl_seconds": "2h", "jwks_maximum_ttl_seconds": "1h"], "jwks-minimum-ttl-seconds: the least"),
        (["jwks_ttl_seconds": "59"], "--jwks-ttl-seconds: 59s is outside 5m to 1d"),
        (["replay_store_password_file": "/a"], "--replay-store-password-file: the store in memory has no password"),
        (["replay_store_sentinel_password_file": "/a"], "--replay-store-sentinel-password-file: replay_store names no"),
        (["access_tokens": "accept"], "--access-tokens: Graph is asked about access tokens with the app's secret"),
        (["admin_listen": "127.0.0.1:8080"], "--admin-listen: the administrative listener has the service's own"),
        (["admin_listen": "0.0.0.0:8080"], "--admin-listen: "), (["listen": "0.0.0.0:8081"], "admin_listen: "),
        (["listen": "[::]:1", "admin_listen": "[::1]:1"], "--admin-listen: "),
    ]

    /// Settings that open access or have no effect, with words of their one warning.
    private static let doubtful: [([String: String], [String])] = [
        (["dpop": "required_if_bound"], ["dpop", "gateway is not enabled"]),
        (["gateway_origin": "https://api.example.com"], ["gateway_origin", "gateway is not enabled"]),
        (["auth_headers": "X-Person=sub"], ["auth_headers", "gateway is not enabled"]),
        (["token_lifetime_seconds": "300"], ["token_lifetime_seconds", "issuer is not"]),
        (["token_type_header": "JWT"], ["token_type_header", "issuer is not"]),
        (["callbacks_secret_file": "/none"], ["callbacks_secret_file is set and callbacks_url is not"]),
        (["gateway": "enabled"], ["if_sent", "passes as Bearer", "RFC 9449 section 7.2"]),
        (["gateway": "enabled", "dpop": "ignored"], ["ignored", "passes as Bearer"]),
        (["gateway": "enabled", "dpop": "required_if_bound"], ["gateway_origin is not set", "X-Forwarded-Host"]),
        (["listen": "unix:/run/x/socket", "listen_mode": "0777"], ["every user of this machine", "0777"]),
        (["listen": "unix:/run/x/socket", "listen_mode": "0662"], ["every user of this machine", "0662"]),
        (["issuers": "https://www.facebook.com/"], ["'https://www.facebook.com/' ends with a slash"]),
        (["trusted_peers": "0.0.0.0/0"], ["trusted_peers", "every address"]),
        (["trusted_peers": "10.0.0.0/8,::/0"], ["trusted_peers", "every address"]),
        (["binding": "optional"], ["binding is optional", "stolen"]),
        (["access_tokens": "accept", "app_secrets_file": "/none"], ["access_tokens is accept", "client_keys_file"]),
        (
            ["access_tokens": "accept", "app_secrets_file": "/a", "client_keys_file": "/a", "tracking": "limited"],
            ["tracking: limited is about id tokens"]
        ),
        (["listen": "0.0.0.0:8080"], ["0.0.0.0:8080", "open to anybody"]),
        (["listen": "[::]:0"], ["[::]:0", "open to anybody"]),
        (["jwks_file": "/nonexistent/keys.json"], ["jwks_file", "/nonexistent (no such file or directory)"]),
        (["jwks_file": "/dev/null/keys.json"], ["jwks_file", "/dev/null (not a directory)"]),
        (["replay_store": "redis://a.example", "replay_store_password_file": "/a"], ["in the clear", "rediss://"]),
    ]

    /// A setting's variable, its value, and words of the sentence.
    private static let values: [(name: String, value: String, words: String)] = [
        ("APP_IDS", "my-app", "copy the App ID from the App Dashboard"),
        ("APP_IDS", "\"1\"", "without quotation marks"),
        ("APP_IDS", "12a", "copy the App ID"), ("APP_IDS", "1,1", "'1' stands in the list twice"),
        ("LISTEN", "http://127.0.0.1:8080", "no numeric address and port, such as 127.0.0.1:8080"),
        ("LISTEN", "8080", "such as 127.0.0.1:8080 or [::1]:8080"), ("LISTEN_MODE", "rw", "from 0600 to 0777"),
        ("ADMIN_LISTEN", "unix:/tmp/x", "takes an address and port alone"), ("WORKERS", "auto", "not a whole number"),
        ("JWKS_URLS", "http://a.example/keys", "plain http is for loopback addresses alone"),
        ("ISSUERS", "http://a.example", "give an https URL"), ("GRAPH_VERSION", "26.0", "such as v26.0"),
        ("GRAPH_URL", "https://graph.facebook.com/v26.0", "ends with a version: that is graph_version"),
        ("TRUSTED_PEERS", "gateway", "such as 10.0.0.0/8 or fd00::/8"), ("MEMORY_LIMIT", "64MB", "64MiB, 1GiB"),
        ("NONCE_TTL_SECONDS", "10 minutes", "(90s, 5m, 1h, 2d)"), ("CLOCK_SKEW_SECONDS", "600", "outside 0 to 5m"),
        ("LOG_LEVEL", "warn", "none of trace, debug, info, notice, warning"), ("AUDIT_LOG", "true", "none of off, on"),
        ("BINDING", "none", "none of required, optional"), ("TRACKING", "enabled", "none of any, limited"),
        ("DPOP", "required", "if_sent, required_if_bound"), ("AUTH_HEADERS", "X_A=sub", "letters, digits and hyphens"),
        ("AUTH_HEADERS", "X-A=phone", "none of the claims sub, aud"),
        ("GATEWAY_ORIGIN", "api.example.com", "such as https://api.example.com"),
        ("CALLBACKS_URL", "/webhooks", "does not begin with https://"),
        ("REPLAY_STORE", "http://cache", "must be memory, or begin with redis://"),
        ("REPLAY_STORE", "redis:///run/redis.sock", "a socket is redis+unix:///PATH"),
        ("REPLAY_STORE", "redis://:hunter2@p/a@127.0.0.1", "encode it, or use replay_store_password_file"),
        ("APP_ID", "1", "did you mean LIMITED_LOGIN_APP_IDS?"), ("NONCE", "1", "LIMITED_LOGIN_NONCE: "), ("", "1", ""),
        ("app_ids", "1", "LIMITED_LOGIN_app_ids: "), ("CONFIG", "", "LIMITED_LOGIN_CONFIG: "),
        ("ADMIN_PORT", "8081", "LIMITED_LOGIN_ADMIN_PORT: "),
    ]

    /// A secret in place of its file's name: the variable, and words of the sentence.
    private static let misnamed = [
        ("NONCE_SECRET", "NONCE_SECRET_FILE? Secrets"), ("APP_SECRET", "APP_SECRETS_FILE? Secrets"),
        ("CLIENT_KEYS", "CLIENT_KEYS_FILE? Secrets"), ("CALLBACKS_SECRET", "CALLBACKS_SECRET_FILE? Secrets"),
        ("SIGNING_KEY", "SIGNING_KEYS_FILE? Secrets"), ("APP_IDS_FILE", "APP_IDS?"), ("TLS_KEY", "TLS_KEY_FILE? S"),
    ]
    static let secret = "5f0c1a527b0e4d2b"

    static let all: [SettingMistake] =
        files.map { .init(file: $0.0, words: [$0.1]) } + conflicts.map { .init(flags: $0.0, words: [$0.1]) }
        + doubtful.map { .init(flags: $0.0, isWarning: true, words: $0.1) }
        + values.map { .init(environment: ["LIMITED_LOGIN_\($0.name)": $0.value], words: ["variable", $0.words]) }
        + misnamed.map {
            .init(environment: ["LIMITED_LOGIN_\($0.0)": secret], words: ["; did you mean LIMITED_LOGIN_\($0.1)"])
        }
        + misnamed.map { .init(file: "{\"\($0.0.lowercased())\": \"\(secret)\"}", words: ["did you mean '"]) }
        + ["", "0", "65536", "http", "-1", "80 "].map {
            .init(environment: ["PORT": $0], words: ["environment variable PORT: a port from 1 to 65535 is needed"])
        }
}

@Suite("Mistakes in the settings")
struct SettingMistakeTests {
    @Test("Each is told in one sentence, with its remedy and without a secret", arguments: SettingMistake.all)
    func told(_ mistake: SettingMistake) throws {
        let apps = mistake.words[0].hasPrefix("no app") ? [:] : ["LIMITED_LOGIN_APP_IDS": "1"]
        let environment = apps.merging(mistake.environment) { $1 }
        let load = { try LLServiceTests.load(mistake.flags, environment: environment, file: mistake.file) }
        let told =
            mistake.isWarning
            ? try load().warnings : try #require(throws: ConfigurationError.self) { try load() }.sentences
        #expect(told.count == 1, "\(told)")
        for words in mistake.words where !words.isEmpty { #expect(told.first?.contains(words) == true, "\(told)") }
        #expect(!"\(told)".contains(SettingMistake.secret) && !"\(told)".contains("hunter2"))
    }
}
