import FoundationEssentials
import Testing

@testable import LLService

/// One setting: a good value other than its default, the settings that it needs beside it, and bad values.
struct SettingCase: Sendable, CustomTestStringConvertible {
    let name: String
    let good: String
    var beside: [String: String] = [:]
    /// Texts that are refused from every source.
    var bad: [String] = []

    var testDescription: String { name }

    init(_ name: String, _ good: String, _ beside: [String: String] = [:], bad: [String] = []) {
        (self.name, self.good, self.beside, self.bad) = (name, good, beside, bad)
    }
}

@Suite("Each setting: a good value from every source, and bad ones")
struct SettingTests {
    static let tls = ["tls_certificate_file": "/tmp/certificate.pem", "tls_key_file": "/tmp/key.pem"]
    static let webhook = [
        "app_secrets_file": "/tmp/secrets", "callbacks_url": "https://backend.example/webhooks",
        "callbacks_secret_file": "/tmp/whsec", "data_deletion_status_url": "https://app.example/deletion",
    ]
    private static let tokens = [
        "issuer": "https://login.example", "signing_keys_file": "/tmp/keys", "client_keys_file": "/tmp/clients",
    ]
    private static let sentinels = [
        "replay_store": "redis+sentinel://cache.example/main", "replay_store_sentinel_password_file": "/tmp/secret",
    ]
    private static let redisIdentity = [
        "replay_store": "rediss://cache.example", "replay_store_client_certificate_file": "/tmp/cert",
        "replay_store_client_key_file": "/tmp/key",
    ]
    private static let unix = ["listen": "unix:/tmp/http.sock"]
    private static let addresses = [
        "8080", ":8080", "127.0.0.1", "127.0.0.1:65536", "127.0.0.1:+80", "256.0.0.1:80", "::1:80", "[::1]",
        "example.com:80", "unix:", "unix:http.sock", "UNIX:/tmp/http.sock", "/tmp/http.sock",
        "http://user:hunter2@example.com/",
    ]
    private static let times = [
        "0", "-1", "+5", "1w", "h", "1.5h", "1 h", "1H", "1h30m", "8d", "5ms", "999999999999d", " 60", "3600.0",
        "99999999999999999999", "604801",
    ]
    private static let origins = [
        "api.example.com", "https://a.example/api", "https://a.example/?", "https://a.example#", "https://u@a.example",
        "ftp://a.example", "https://",
    ]
    // HTTPURLTests has the others.
    private static let badURLs = [
        "", "http://example.com/", "https://u:hunter2@a.example/", "https://u:hunter2/3@a.example/",
    ]

    static let cases: [SettingCase] = [
        SettingCase("app_ids", "11,22", bad: ["", "1,,2", "1,1", "12 34", String(repeating: "9", count: 65)]),
        SettingCase("issuers", "https://a.example,https://b.example", bad: ["", "a,a", "http://a.example"]),
        SettingCase("jwks_urls", "http://127.0.0.1:9/a,https://b.example/", bad: badURLs + ["https://a.example,b"]),
        SettingCase("jwks_file", "/tmp/keys.json", bad: [""]), SettingCase("ca_file", "/tmp/ca.pem", bad: [""]),
        SettingCase("jwks_ttl_seconds", "299", ["jwks_minimum_ttl_seconds": "1"], bad: times),
        SettingCase("jwks_minimum_ttl_seconds", "1", bad: ["86401"]),
        SettingCase("jwks_maximum_ttl_seconds", "301", ["jwks_ttl_seconds": "300"], bad: ["0"]),
        SettingCase("jwks_max_stale_seconds", "299", bad: ["x"]), SettingCase("listen", "[::1]:9090", bad: addresses),
        SettingCase("listen_mode", "0666", unix, bad: ["", "440"]),
        SettingCase("admin_listen", "127.0.0.1:9091", bad: ["unix:/tmp/http.sock", "here"]),
        SettingCase("workers", "3", bad: ["0", "257", "many", "2m", "1e2"]),
        SettingCase("memory_limit", "128MiB", bad: ["64", "64MB", "15MiB", "999999999999GiB", "MiB", "-64MiB"]),
        SettingCase("idle_timeout_seconds", "299", bad: ["7201"]),
        SettingCase("clock_skew_seconds", "299", bad: ["301", ""]),
        SettingCase("max_token_age_seconds", "299", bad: ["0"]),
        SettingCase("binding", "optional", bad: ["none", "Required"]),
        SettingCase("tracking", "limited", bad: ["enabled"]),
        SettingCase("access_tokens", "accept", ["app_secrets_file": "/tmp/secrets"]),
        SettingCase("client_keys_file", "/tmp/clients"),
        SettingCase("tls_certificate_file", "/tmp/other.pem", tls, bad: [""]),
        SettingCase("tls_key_file", "/tmp/other.pem", tls), SettingCase("tls_client_ca_file", "/tmp/other.pem", tls),
        SettingCase("trusted_peers", "10.0.0.0/8,::1", bad: ["gateway", "10.0.0.0/33"]),
        SettingCase("gateway", "enabled", bad: ["on"]),
        SettingCase("gateway_origin", "https://a.example", bad: origins),
        SettingCase("dpop", "ignored", bad: ["required"]),
        SettingCase("auth_headers", "X-A=sub,X-B=name", bad: ["X_A=sub", "Connection=sub", "X-A=phone", "X-A=sub,"]),
        SettingCase("signature_cache_entries", "0"), SettingCase("nonce_secret_file", "/tmp/secret"),
        SettingCase("nonce_ttl_seconds", "299"), SettingCase("replay", "reject"),
        SettingCase("replay_store", "rediss://u@cache.example:7000/2", bad: ["redis", ""]),
        SettingCase("replay_store_password_file", "/tmp/secret", ["replay_store": "redis://cache.example"]),
        SettingCase("replay_store_sentinel_password_file", "/tmp/secret", sentinels),
        SettingCase("replay_store_sentinel_user", "svc", sentinels),
        SettingCase("replay_store_client_certificate_file", "/tmp/c", redisIdentity, bad: [""]),
        SettingCase("replay_store_client_key_file", "/tmp/c", redisIdentity),
        SettingCase("replay_store_capacity", "2000"), SettingCase("app_secrets_file", "/tmp/secrets"),
        SettingCase("graph_url", "http://127.0.0.1:9/graph", bad: badURLs + ["https://a.example/v26.0/"]),
        SettingCase("graph_version", "v27.1", bad: ["26"]),
        SettingCase("uninstall_url", "http://127.0.0.1:9/graph", bad: badURLs + ["https://a.example/?b"]),
        SettingCase("callbacks_url", "https://other.example/x", webhook, bad: badURLs + ["/webhooks"]),
        SettingCase("callbacks_secret_file", "/tmp/other", webhook, bad: [""]),
        SettingCase("data_deletion_status_url", "https://b.example/", webhook, bad: ["", "https://b.example/?a"]),
        SettingCase("issuer", "https://other.example", tokens, bad: ["http://a.example", "https://www.facebook.com"]),
        SettingCase("signing_keys_file", "/tmp/other", tokens),
        SettingCase("token_audiences", "a,b", tokens, bad: ["a,a"]),
        SettingCase("token_claims", "name,email", tokens, bad: ["phone"]),
        SettingCase("token_extra_claims", #"{"role":"user"}"#, tokens, bad: ["x", #"{"iss":"a"}"#]),
        SettingCase("token_scope", "read write", tokens, bad: ["a\"b", "a\u{e9}"]),
        SettingCase("token_type_header", "JWT", tokens), SettingCase("token_lifetime_seconds", "299", tokens),
        SettingCase("watch_files", "disabled", bad: ["on"]), SettingCase("drain_delay_seconds", "299", bad: ["301"]),
        SettingCase("log_level", "debug", bad: ["verbose"]), SettingCase("log_format", "json", bad: ["xml"]),
        SettingCase("audit_log", "on"),
    ]

    @Test("The table has each setting once")
    func table() { #expect(Self.cases.map(\.name) == Settings.rows.map(\.name)) }

    @Test("A good value has the same effect as a flag, in the environment and in the file", arguments: cases)
    func good(_ setting: SettingCase) throws {
        let row = try #require(Settings.rows.first { $0.name == setting.name })
        let base = setting.beside.merging(["app_ids": "1"]) { $1 }.filter { $0.key != row.name }
        let environment = Dictionary(uniqueKeysWithValues: base.map { ("LIMITED_LOGIN_\($0.uppercased())", $1) })
        let json =
            switch row.kind {
            case .list: "[\(setting.good.split(separator: ",").map { "\"\($0)\"" }.joined(separator: ","))]"
            case .integer: setting.good
            default: "\"\(setting.good.replacing("\"", with: "\\\""))\""
            }
        let loads = [
            try load([row.name: setting.good], environment: environment),
            try load(environment: environment.merging([row.environmentName: setting.good]) { $1 }),
            try load(environment: environment, file: "{\"\(row.name)\": \(json)}"),
        ]
        let origins = ["--\(row.flagName)", "environment variable \(row.environmentName)", ": \(row.name)"]
        for (loaded, origin) in zip(loads, origins) {
            #expect(loaded.value(row) == loads[0].value(row) && loaded.value(row) != row.standard)
            #expect(loaded.settings[row.name]?.origin.description.hasSuffix(origin) == true)
        }
    }

    @Test("A command that reads the file of signing keys alone gets it without an issuer")
    func alone() throws {
        let row = Settings.all.signingKeysFile.row
        #expect(try load([row.name: "/tmp/keys"], only: [row]).signingKeysFile == "/tmp/keys")
    }

    @Test("A bad value is refused in one sentence that names its place and tells no password", arguments: cases)
    func bad(_ setting: SettingCase) throws {
        for text in setting.bad {
            let flags = [setting.name: text].merging(setting.beside.merging(["app_ids": "1"]) { $1 }) { own, _ in own }
            let error = #expect(throws: ConfigurationError.self, "\(text)") { try load(flags) }
            let flag = setting.name.replacing("_", with: "-")
            #expect(error?.description.hasPrefix("--\(flag): ") == true && error?.sentences.count == 1, "\(error)")
            #expect(error?.description.contains("hunter2") == false)
        }
    }

    @Test("The text of each default is a valid value of its setting, and its summary one sentence on one line")
    func defaults() throws {
        for row in Settings.rows {
            #expect(row.summary.hasSuffix(".") && !row.summary.contains { "|\n".contains($0) })
            #expect(!row.defaultText.isEmpty && !row.name.contains("-"))
            guard let standard = row.standard else { continue }
            #expect(try row.kind.value(of: row.defaultText) == standard, "\(row.name)")
            #expect(throws: Never.self, "\(row.name)") { try row.read(standard) }
        }
    }

    @Test(
        "Settings that seem not to go together are accepted if they do",
        arguments: [
            ["listen": "127.0.0.2:8081"], ["listen": "[::]:1", "admin_listen": "0.0.0.0:1"],
            ["listen": "0.0.0.0:0", "admin_listen": "0.0.0.0:0"], tls.merging(["idle_timeout_seconds": "241"]) { $1 },
            tls.merging(["tls_client_ca_file": "/a", "idle_timeout_seconds": "240"]) { $1 },
            // Another issuer's app id may be a word.
            ["app_ids": "my-app", "issuers": "https://id.example"],
        ]
    )
    func consistent(flags: [String: String]) throws { _ = try load(flags.merging(["app_ids": "1"]) { own, _ in own }) }

    @Test("All workers together remember signatures in a sixteenth of the memory", arguments: [1, 2, 64, 192])
    func signatures(workers: Int) throws {
        let flags = ["app_ids": "1", "workers": "\(workers)", "memory_limit": "64MiB"]
        let configuration = try load(flags)
        #expect(configuration.signaturesPerWorker * workers * RecentDigests.bytesPerEntry <= 4 * 1_048_576)
        // A default that is reduced needs no warning; a configured value that is reduced does.
        #expect(!configuration.warnings.contains { $0.hasPrefix("signature_cache_entries") })
        let wish = try load(flags.merging(["signature_cache_entries": "50000"]) { $1 })
        #expect(wish.warnings.contains { $0.hasPrefix("signature_cache_entries is 50000") })
        #expect(try load(flags.merging(["signature_cache_entries": "0"]) { $1 }).signaturesPerWorker == 0)
    }
}

/// Loads a configuration from these sources alone.
func load(
    _ flags: [String: String] = [:],
    environment: [String: String] = [:],
    file: String? = nil,
    only rows: [SettingRow]? = nil
) throws -> ServiceConfiguration {
    let path = try file.map { try TemporaryFile(contents: $0) }
    return try ConfigurationLoader.load(
        flags: flags,
        environment: environment,
        file: path?.path,
        only: rows,
        readsDefaultFile: false
    )
}

/// A file that is removed with this object.
final class TemporaryFile {
    let path: String

    init(contents: String) throws {
        path = FileManager.default.temporaryDirectory.path + "/limited-login-\(UUID().uuidString).json"
        try Data(contents.utf8).write(to: URL(filePath: path))
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}
