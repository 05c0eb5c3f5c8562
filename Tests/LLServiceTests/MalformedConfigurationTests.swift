import Testing

@testable import LLService

/// A configuration that must be refused, and a text that the message must contain.
struct MalformedConfiguration: Sendable, CustomTestStringConvertible {
    var environment: [String: String] = [:]
    var flags: [ConfigurationKey: String] = [:]
    var file: String?
    let names: String

    var testDescription: String { file ?? flags.first.map { "--\($0.key.flagName) \($0.value)" } ?? "\(environment)" }

    static func variable(_ name: String, _ value: String) -> Self {
        Self(environment: ["LIMITED_LOGIN_\(name)": value], names: "LIMITED_LOGIN_\(name)")
    }

    static func flag(_ key: ConfigurationKey, _ value: String) -> Self {
        Self(flags: [key: value], names: "--\(key.flagName)")
    }

    static func member(_ json: String, _ names: String) -> Self { Self(file: json, names: names) }
}

@Suite("Configuration: mistakes that stop a start")
struct MalformedConfigurationTests {
    @Test(
        "A malformed setting is refused with a message that names its place",
        arguments: variables + modes + webhooks + flags + files
    )
    func refused(_ malformed: MalformedConfiguration) throws {
        let file = try malformed.file.map { try TemporaryFile(contents: $0) }
        var environment = malformed.environment
        if environment["LIMITED_LOGIN_APP_IDS"] == nil, malformed.names != "app id" {
            environment["LIMITED_LOGIN_APP_IDS"] = "123"
        }
        #expect {
            try ConfigurationLoader.load(
                flags: malformed.flags,
                environment: environment,
                file: file?.path,
                readsDefaultFile: false
            )
        } throws: { error in
            guard let error = error as? ConfigurationError else { return false }
            let text = error.description
            let namesFile = file.map { text.contains($0.path) || malformed.names == "app id" } ?? true
            // One mistake gives one sentence, and its consequences give none.
            let isOne = error.sentences == [text]
            return text.contains(malformed.names) && namesFile && !error.reason.isEmpty && isOne
        }
    }

    @Test("All mistakes are reported at once, without those that only follow from another one")
    func several() throws {
        let file = try TemporaryFile(
            contents: #"""
                {"app_id": ["1"], "workers": "two", "listen": "8080", "listen_mode": "0666", "replay_store": "redis",
                 "replay_store_password_file": "p", "access_tokens": "accept", "app_secrets_file": 5, "gateway": "on",
                 "issuer": "https://i.example", "jwks_ttl_seconds": 10}
                """#
        )
        let error = try #require(throws: ConfigurationError.self) {
            try ConfigurationLoader.load(
                flags: [.clockSkewSeconds: "1e2"],
                environment: ["LIMITED_LOGIN_WORKER": "2", "LIMITED_LOGIN_TRUSTED_PEERS": "gateway"],
                file: file.path
            )
        }
        let told = [
            "unknown key 'app_id'", "workers: ", "app_secrets_file: ", "LIMITED_LOGIN_WORKER: ",
            "--clock-skew-seconds: ",
            "listen: ", "LIMITED_LOGIN_TRUSTED_PEERS: ", "gateway: ", "replay_store: ",
            "issuer: set client_keys_file and signing_keys_file too", "jwks_ttl_seconds: 10s is outside 5m to 1d",
        ]
        #expect(error.sentences.count == told.count, "\(error.sentences)")
        for (sentence, part) in zip(error.sentences, told) { #expect(sentence.contains(part)) }
        #expect(error.description == error.sentences.joined(separator: "; "))
    }

    static let variables = values.flatMap { name, values in values.map { MalformedConfiguration.variable(name, $0) } }

    /// Values that a variable must not have, by the variable.
    private static let values: KeyValuePairs<String, [String]> = [
        "APP_IDS": ["", "1,,2", "1,1", "12 34", String(repeating: "9", count: 65)],
        "ISSUERS": ["", "a,a", "ftp://a.example", "www.facebook.com", "http://a.example"], "CONFIG": [""],
        "JWKS_URLS": [
            "ftp://example.com/", "http://example.com/keys", "https://", "https://user@example.com/", "example.com",
            "https://example.com:99999/",
        ],
        "JWKS_FILE": [""], "CA_FILE": [""],
        "JWKS_TTL_SECONDS": [
            "0", "-1", "+5", "1w", "h", "1.5h", "1 h", "1H", "1h30m", "8d", "5ms", "999999999999d", " 60", "3600.0",
            "99999999999999999999", "604801", "59",
        ],
        "JWKS_MINIMUM_TTL_SECONDS": ["86401"], "JWKS_MAXIMUM_TTL_SECONDS": ["0"], "JWKS_MAX_STALE_SECONDS": ["x"],
        "LISTEN": [
            "8080", ":8080", "127.0.0.1", "127.0.0.1:65536", "127.0.0.1:+80", "256.0.0.1:80", "::1:80", "[::1]",
            "example.com:80", "unix:", "unix:http.sock", "unix:@abstract", "UNIX:/tmp/http.sock", "/tmp/http.sock",
            "unix:/" + String(repeating: "x", count: 107),
        ],
        "ADMIN_LISTEN": ["unix:/tmp/http.sock", "127.0.0.1:8080", "0.0.0.0:8080"], "LISTEN_MODE": ["0660"],
        "WORKERS": ["0", "257"], "CLOCK_SKEW_SECONDS": ["301", ""], "MAX_TOKEN_AGE_SECONDS": ["0"],
        "BINDING": ["none", "Required"], "TRACKING": ["enabled"], "DRAIN_DELAY_SECONDS": ["301"],
        "TLS_CERTIFICATE_FILE": ["/tls/certificate.pem", ""], "TLS_KEY_FILE": ["/tls/key.pem"],
        "TLS_CLIENT_CA_FILE": ["/tls/authority.pem"],
        "GRAPH_URL": ["https://graph.facebook.com/v26.0", "https://graph.facebook.com/v26.0/"],
        "LOG_LEVEL": ["verbose"], "LOG_FORMAT": ["xml"], "APP_ID": ["123"], "": ["1"], "NONCE": ["1"], "app_ids": ["1"],
    ]

    /// Sockets with invalid permissions.
    static let modes: [MalformedConfiguration] = ["", "rw", "440", "0o660", "1660", "00660", "888"].map { mode in
        MalformedConfiguration(
            environment: ["LIMITED_LOGIN_LISTEN": "unix:/tmp/http.sock", "LIMITED_LOGIN_LISTEN_MODE": mode],
            names: "LIMITED_LOGIN_LISTEN_MODE"
        )
    }

    /// Incomplete or unusable settings of the callbacks' backend.
    static let webhooks: [MalformedConfiguration] = [
        ("https://a.example/", nil, "https://b.example/", "CALLBACKS_URL"),
        ("https://a.example/", "/file", nil, "CALLBACKS_URL"), ("https://a.example/", nil, nil, "CALLBACKS_URL"),
        ("http://a.example/", "/file", "https://b.example/", "CALLBACKS_URL"),
        ("https://user@a.example/", "/file", "https://b.example/", "CALLBACKS_URL"),
        ("/webhooks", "/file", "https://b.example/", "CALLBACKS_URL"),
        ("https://a.example/", "/file", "http://b.example/", "DATA_DELETION_STATUS_URL"),
        ("https://a.example/", "/file", "https://b.example/?a=b", "DATA_DELETION_STATUS_URL"),
        ("https://a.example/", "/file", "https://b.example/#a", "DATA_DELETION_STATUS_URL"),
        ("https://a.example/", "", "https://b.example/", "CALLBACKS_SECRET_FILE"),
    ].map { url, secretFile, statusURL, names in
        var environment = ["LIMITED_LOGIN_CALLBACKS_URL": url]
        environment["LIMITED_LOGIN_CALLBACKS_SECRET_FILE"] = secretFile
        environment["LIMITED_LOGIN_DATA_DELETION_STATUS_URL"] = statusURL
        return MalformedConfiguration(environment: environment, names: "LIMITED_LOGIN_\(names)")
    }

    static let flags: [MalformedConfiguration] = [
        .flag(.appIDs, ","), .flag(.appIDs, "1\\u0032"), .flag(.listen, "here"), .flag(.workers, "many"),
        .flag(.binding, "maybe"),
        .flag(.clockSkewSeconds, "1e2"), .flag(.jwksURLs, "https://a.example,http://b.example"),
    ]

    static let files: [MalformedConfiguration] = [
        .member("", "not valid JSON"), .member("{", "not valid JSON"), .member("[]", "one JSON object"),
        .member("{} {}", "not valid JSON"),
        .member(#"{"app_ids": ["1"],}"#, "no comma stands before a closing bracket"),
        .member(#"{"app_ids": ["1"], "app_ids": ["2"]}"#, "line 1, column 20: the member 'app_ids' comes twice"),
        .member(#"{"app_ids": ["1"], "\u0061pp_ids": ["2"]}"#, "comes twice"),
        .member("{\n  \"workers\": 2,\n  // comment\n}", "line 3, column 3: the file is not valid JSON: a byte"),
        .member(#"{"app_ids": [123]}"#, "the list may hold strings alone: write each in double quotes"),
        .member(#"{"app_ids": 123}"#, #"app_ids: a list of strings is needed, as in ["123"]"#),
        .member(#"{"app_ids": ["1"], "workers": "2"}"#, "workers: a whole number without quotation marks is needed"),
        .member("{} // comment", "not valid JSON"), .member(#"{"app_id": ["1"]}"#, "did you mean 'app_ids'?"),
        .member(#"{"listne": "127.0.0.1:1"}"#, "did you mean 'listen'?"),
        .member(#"{"colour": "red"}"#, "unknown key 'colour'"), .member(#"{"app_ids": "1"}"#, "app_ids"),
        .member(#"{"app_ids": [1]}"#, "app_ids"), .member(#"{"workers": "2"}"#, "workers"),
        .member(#"{"workers": 2.5}"#, "workers"), .member(#"{"workers": 1e2}"#, "workers"),
        .member(#"{"workers": true}"#, "workers"), .member(#"{"listen": 8080}"#, "listen"),
        .member(#"{"listen": "unix:/a", "listen_mode": 660}"#, "listen_mode"),
        .member(#"{"listen": "unix:/a\u0000b"}"#, "listen"), .member(#"{"listen": ""}"#, "listen"),
        .member(#"{"jwks_file": "a\u0000b"}"#, "jwks_file"),
        .member(#"{"binding": false}"#, "binding"), .member(#"{"log_level": ["info"]}"#, "log_level"),
        .member(#"{"app_ids": []}"#, "app id"), .member("{}", "app id"),
        .member(#"{"jwks_ttl_seconds": "1 hour"}"#, "jwks_ttl_seconds"),
        .member(#"{"jwks_ttl_seconds": true}"#, "jwks_ttl_seconds"),
        .member(#"{"jwks_ttl_seconds": 1.5}"#, "jwks_ttl_seconds"),
        .member(#"{"workers": "2m"}"#, "workers"),
        .member(#"{"memory_limit": "64MB"}"#, "memory_limit"), .member(#"{"memory_limit": true}"#, "memory_limit"),
        .member(#"{"memory_limit": "15MiB"}"#, "memory_limit"), .member(#"{"memory_limit": 1.5}"#, "memory_limit"),
        .member(#"{"memory_limit": "999999999999GiB"}"#, "memory_limit"),
        .member(#"{"memory_limit": "MiB"}"#, "memory_limit"), .member(#"{"memory_limit": "-64MiB"}"#, "memory_limit"),
    ]
}
