import FoundationEssentials
import Testing

@testable import LLService

@Suite("Configuration: warnings, and what a reload may change")
struct ConfigurationWarningTests {
    private static func configuration(_ flags: [String: String]) throws -> ServiceConfiguration {
        try load(flags.merging(["app_ids": "123"]) { own, _ in own })
    }

    @Test(
        "A good setting gives no warning",
        arguments: [
            [:], ["dpop": "if_sent"], ["token_lifetime_seconds": "600"], ["listen": "unix:/run/x/socket"],
            ["issuers": "https://www.facebook.com"], ["listen": "[::1]:8080"], ["tracking": "limited"],
            ["listen": "unix:/run/x/socket", "listen_mode": "0777", "client_keys_file": "/none"],
            ["listen": "unix:/run/x/socket", "listen_mode": "0664"], ["trusted_peers": "10.0.0.0/8,fd00::/8"],
            ["gateway": "enabled", "dpop": "required_if_bound", "gateway_origin": "https://api.example.com"],
            ["access_tokens": "accept", "app_secrets_file": "/none", "client_keys_file": "/none"],
            ["listen": "0.0.0.0:8080", "client_keys_file": "/none"], ["jwks_file": "/tmp/keys.json"],
            ["jwks_file": "keys.json"],
            ["replay_store": "rediss://cache.example", "replay_store_password_file": "/none"],
        ] as [[String: String]]
    )
    func untold(flags: [String: String]) throws { #expect(try Self.configuration(flags).warnings == []) }

    @Test(
        "A password that would cross the network unencrypted causes a warning, and is never told",
        arguments: [
            ("redis://:hunter2@cache.example:6379", true), ("redis://:hunter2@192.0.2.1:6379", true),
            ("rediss://:hunter2@cache.example:6379", false), ("redis://:hunter2@127.0.0.1:6379", false),
            ("redis://:hunter2@[::1]:6379", false), ("redis://:hunter2@localhost", false),
            ("redis://cache.example:6379", false),
        ]
    )
    func clearPassword(url: String, isTold: Bool) throws {
        let configuration = try load(environment: ["LIMITED_LOGIN_APP_IDS": "1", "LIMITED_LOGIN_REPLAY_STORE": url])
        #expect(configuration.warnings.count == (isTold ? 1 : 0) && !"\(configuration.warnings)".contains("hunter2"))
        let row = Settings.all.replayStore.row
        let shown = configuration.settings[row.name].map { row.shown($0.value) }
        #expect(shown?.contains("hunter2") == false && shown?.contains("with a password") == url.contains("hunter2"))
    }

    @Test(
        "A secret file that its group or others can read or write causes a warning",
        arguments: [(0o640, "read"), (0o604, "read"), (0o660, "change"), (0o602, "change"), (0o600, nil)]
    )
    func looseSecretFile(mode: Int, can: String?) throws {
        let file = try TemporaryFile(contents: #"{"app_ids": ["1"], "replay_store": "redis://:hunter2@127.0.0.1"}"#)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
        let rows = Settings.rows.filter { $0.kind == .secretFile }
        let others = [
            "listen": "unix:/tmp/s", "tls_certificate_file": "/c", "replay_store": "rediss+sentinel://127.0.0.1/m",
            "replay_store_client_certificate_file": "/c",
        ]
        let flags = Dictionary(uniqueKeysWithValues: rows.map { ($0.name, file.path) }).merging(others) { $1 }
        let told = try Self.configuration(flags).warnings.filter { $0.contains(" can ") }
        #expect(told.count == (can == nil ? 0 : rows.count), "\(told)")
        for (warning, row) in zip(told, rows) {
            #expect(warning.contains("can \(can ?? "") \(row.name): \(file.path) (mode 0\(String(mode, radix: 8)))"))
        }
        let inFile = try ConfigurationLoader.load(flags: [:], environment: [:], file: file.path).warnings
        #expect(inFile.contains { $0.contains("the password in replay_store: \(file.path)") } == (can != nil))
    }

    /// An old value, a new value, and the kinds of reload that allow the change.
    static let changes: [(ConfigurationValue?, ConfigurationValue?, Set<SettingReload>)] = [
        (nil, nil, Set(SettingReload.allCases)), (.text("a"), .text("a"), Set(SettingReload.allCases)),
        (.text("a"), .text("b"), [.takesEffect, .rereads, .guards]), (nil, .text("a"), [.takesEffect, .guards]),
        (.text("a"), nil, [.takesEffect]),
    ]

    @Test("A reload may change a setting only as the setting allows", arguments: changes)
    func reload(old: ConfigurationValue?, new: ConfigurationValue?, allowed: Set<SettingReload>) {
        for reload in SettingReload.allCases {
            let refusal = reload.refusal("listen", from: old, to: new)
            #expect((refusal == nil) == allowed.contains(reload) && refusal?.contains("listen") != false, "\(reload)")
        }
    }

    @Test("A reload never removes a setting that restricts access; the same value in another unit is no change")
    func reloads() throws {
        let open = try Self.configuration([:])
        let tls = ["tls_certificate_file": "/c", "tls_key_file": "/k"]
        for (name, base) in [("client_keys_file", [:]), ("nonce_secret_file", [:]), ("tls_client_ca_file", tls)] {
            let (without, with) = try (Self.configuration(base), Self.configuration(base.merging([name: "/a"]) { $1 }))
            #expect(with.refusal(after: without) == nil && with.refusal(after: with) == nil)
            #expect(without.refusal(after: with)?.contains("would take away \(name)") == true)
        }
        let written = [
            "jwks_ttl_seconds": "1h", "memory_limit": "65536KiB", "listen": "127.0.0.1:8080", "replay_store": "memory",
        ]
        #expect(try Self.configuration(written).refusal(after: open) == nil)
        #expect(try Self.configuration(["workers": "3"]).refusal(after: open)?.contains("workers") == true)
    }

    @Test("A reload reports exactly the settings that it makes less strict, with the values before and after")
    func weakenings() throws {
        let strict = try Self.configuration(["tracking": "limited", "replay": "reject", "dpop": "required_if_bound"])
        let lax = try Self.configuration(["binding": "optional", "dpop": "ignored"])
        let told = lax.weakenings(since: strict).map { "\($0.name): \($0.old), \($0.new)" }
        let weaker = ["binding: required, optional", "tracking: limited, any", "dpop: required_if_bound, ignored"]
        #expect(told == weaker + ["replay: reject, accept"])
        #expect(strict.weakenings(since: lax).isEmpty && lax.weakenings(since: lax).isEmpty)
        let ignoring = try Self.configuration(["dpop": "ignored"])
        #expect(try ignoring.weakenings(since: Self.configuration([:])).map(\.old) == ["if_sent"])
    }
}
