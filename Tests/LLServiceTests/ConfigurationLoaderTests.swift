import LLSockets
import Testing

@testable import LLService

@Suite("Configuration: sources and precedence")
struct ConfigurationLoaderTests {
    private func load(
        flags: [ConfigurationKey: String] = [:],
        environment: [String: String] = [:],
        file: String? = nil
    ) throws -> LoadedConfiguration {
        let path = try file.map { try TemporaryFile(contents: $0) }
        return try ConfigurationLoader.load(
            flags: flags,
            environment: environment,
            file: path?.path,
            readsDefaultFile: false
        )
    }

    @Test("With only an app id, every setting has its documented default")
    func defaults() throws {
        let configuration = try load(environment: ["LIMITED_LOGIN_APP_IDS": "123"]).configuration
        #expect(configuration.appIDs == ["123"])
        #expect(configuration.issuers == ["https://www.facebook.com", "https://facebook.com"])
        #expect(configuration.jwksURLs.first == "https://limited.facebook.com/.well-known/oauth/openid/jwks/")
        #expect(configuration.jwksURLs.last == "https://www.facebook.com/.well-known/oauth/openid/jwks/")
        #expect(configuration.jwksTTLSeconds == 3600)
        #expect(configuration.jwksMinimumTTLSeconds == 300)
        #expect(configuration.jwksMaximumTTLSeconds == 86_400)
        #expect(configuration.jwksMaxStaleSeconds == 86_400)
        #expect(configuration.listen.description == "127.0.0.1:8080")
        #expect(configuration.adminListen.description == "127.0.0.1:8081")
        #expect(configuration.clockSkewSeconds == 60)
        #expect(configuration.maxTokenAgeSeconds == nil)
        #expect(configuration.bindingIsRequired)
        #expect(!configuration.onlyLimitedTracking)
        #expect(configuration.drainDelaySeconds == 0)
        #expect(configuration.idleTimeoutSeconds == 75)
        #expect(configuration.workers == nil)
    }

    @Test("A flag overrides the environment, and the environment overrides the file")
    func precedence() throws {
        let file = #"{"app_ids": ["1"], "clock_skew_seconds": 10, "workers": 3, "jwks_ttl_seconds": 400}"#
        let loaded = try load(
            flags: [.clockSkewSeconds: "30"],
            environment: ["LIMITED_LOGIN_CLOCK_SKEW_SECONDS": "20", "LIMITED_LOGIN_WORKERS": "2"],
            file: file
        )
        #expect(loaded.configuration.clockSkewSeconds == 30)
        #expect(loaded.configuration.workers == 2)
        #expect(loaded.configuration.jwksTTLSeconds == 400)
        #expect(loaded.settings[.clockSkewSeconds]?.origin == .flag("clock-skew-seconds"))
        #expect(loaded.settings[.workers]?.origin == .environment("LIMITED_LOGIN_WORKERS"))
        #expect(loaded.settings[.jwksTTLSeconds]?.origin.description.hasSuffix(": jwks_ttl_seconds") == true)
    }

    @Test("With client certificates an idle time of more than 240 s is refused", arguments: [240, 241])
    func idleTimeout(_ seconds: Int) throws {
        var flags: [ConfigurationKey: String] = [
            .appIDs: "1", .tlsCertificateFile: "c.pem", .tlsKeyFile: "k.pem", .idleTimeoutSeconds: "\(seconds)",
        ]
        #expect(try load(flags: flags).configuration.idleTimeoutSeconds == seconds)
        flags[.tlsClientCAFile] = "ca.pem"
        do {
            #expect(try load(flags: flags).configuration.idleTimeoutSeconds == 240)
        } catch {
            #expect(seconds > 240 && "\(error)".hasPrefix("--idle-timeout-seconds: "), "\(error)")
        }
    }

    @Test("All workers together remember signatures in a sixteenth of the memory", arguments: [1, 2, 64, 256])
    func signatures(workers: Int) throws {
        let flags: [ConfigurationKey: String] = [.appIDs: "1", .workers: "\(workers)", .memoryLimit: "64MiB"]
        let configuration = try load(flags: flags).configuration
        #expect(configuration.signaturesPerWorker * workers * RecentDigests.bytesPerEntry <= 4 * 1_048_576)
        // A default that is reduced needs no warning; a configured value that is reduced does.
        #expect(!configuration.warnings.contains { $0.hasPrefix("signature_cache_entries") })
        let wish = try load(flags: flags.merging([.signatureCacheEntries: "50000"]) { $1 }).configuration
        #expect(wish.warnings.contains { $0.hasPrefix("signature_cache_entries is 50000") })
        let none = try load(flags: flags.merging([.signatureCacheEntries: "0"]) { $1 }).configuration
        #expect(none.signaturesPerWorker == 0)
    }

    @Test("PORT is the port of listen on every address, unless listen is set")
    func hostedPort() throws {
        let app = ["LIMITED_LOGIN_APP_IDS": "123", "PORT": "9999"]
        let loaded = try load(environment: app)
        #expect(loaded.configuration.listen.description == "0.0.0.0:9999")
        #expect(loaded.settings[.listen]?.origin == .environment("PORT"))
        let named = app.merging(["LIMITED_LOGIN_LISTEN": "127.0.0.1:7"]) { $1 }
        #expect(try load(environment: named).configuration.listen.description == "127.0.0.1:7")
        #expect(
            try load(flags: [.listen: "127.0.0.1:8"], environment: app).configuration.listen.description
                == "127.0.0.1:8"
        )
        let inFile = #"{"listen": "127.0.0.1:9"}"#
        #expect(try load(environment: app, file: inFile).configuration.listen.description == "127.0.0.1:9")
        #expect(
            try load(environment: app, file: #"{"listen": null}"#).configuration.listen.description == "0.0.0.0:9999"
        )
        for wrong in ["", "0", "65536", "http", "-1", "80 "] {
            let error = #expect(throws: ConfigurationError.self) {
                try load(environment: app.merging(["PORT": wrong]) { $1 })
            }
            #expect(error?.description == "environment variable PORT: a port from 1 to 65535 is needed")
        }
        // A command that does not read `listen` ignores PORT.
        let others = try ConfigurationLoader.load(
            flags: [:],
            environment: ["PORT": "http"],
            file: nil,
            only: [.adminListen],
            readsDefaultFile: false
        )
        #expect(others.settings.isEmpty)
    }

    @Test("Variables that Kubernetes makes for a Service with our prefix are ignored; misspelt ones stop the start")
    func serviceLinks() throws {
        let links = [
            "LIMITED_LOGIN_SERVICE_HOST": "10.0.0.7", "LIMITED_LOGIN_SERVICE_PORT": "80",
            "LIMITED_LOGIN_SERVICE_PORT_HTTP": "80", "LIMITED_LOGIN_PORT": "tcp://10.0.0.7:80",
            "LIMITED_LOGIN_PORT_80_TCP": "tcp://10.0.0.7:80", "LIMITED_LOGIN_PORT_80_TCP_PROTO": "tcp",
            "LIMITED_LOGIN_PORT_80_TCP_PORT": "80", "LIMITED_LOGIN_PORT_80_TCP_ADDR": "10.0.0.7",
            "LIMITED_LOGIN_PORT_53_UDP": "udp://10.0.0.7:53",
            "LIMITED_LOGIN_PORT_9_SCTP": "sctp://10.0.0.7:9", "LIMITED_LOGIN_PORT_9_SCTP_PROTO": "sctp",
            "LIMITED_LOGIN_PORT_9_SCTP_PORT": "9", "LIMITED_LOGIN_PORT_9_SCTP_ADDR": "10.0.0.7",
            "LIMITED_LOGIN_REDIS_MASTER_SERVICE_HOST": "10.0.0.8", "LIMITED_LOGIN_REDIS_MASTER_SERVICE_PORT": "6379",
            "LIMITED_LOGIN_REDIS_MASTER_SERVICE_PORT_TCP_REDIS": "6379",
            "LIMITED_LOGIN_REDIS_MASTER_PORT": "tcp://10.0.0.8:6379",
            "LIMITED_LOGIN_REDIS_MASTER_PORT_6379_TCP": "tcp://10.0.0.8:6379",
            "LIMITED_LOGIN_REDIS_MASTER_PORT_6379_TCP_PROTO": "tcp",
            "LIMITED_LOGIN_REDIS_MASTER_PORT_6379_TCP_PORT": "6379",
            "LIMITED_LOGIN_REDIS_MASTER_PORT_6379_TCP_ADDR": "10.0.0.8",
            "LIMITED_LOGIN_APP_IDS": "123",
        ]
        #expect(
            try load(environment: links).configuration
                == load(environment: ["LIMITED_LOGIN_APP_IDS": "123"]).configuration
        )
        // The Service's first port also gives the variable without a number.
        for address in ["udp://10.0.0.7:80", "sctp://10.0.0.7:80"] {
            let settings = ["LIMITED_LOGIN_PORT": address, "LIMITED_LOGIN_APP_IDS": "123"]
            #expect(throws: Never.self) { try load(environment: settings) }
        }
        let others = [
            "LIMITED_LOGIN_PORT": "8080", "LIMITED_LOGIN_PORT_X_TCP": "1", "LIMITED_LOGIN_PORT_80": "1",
            "LIMITED_LOGIN_SERVICE": "1", "LIMITED_LOGIN_PORT_80_QUIC": "1",
            "LIMITED_LOGIN_ADMIN_PORT": "8081", "LIMITED_LOGIN_SERVICE_HOSTS": "a",
            "LIMITED_LOGIN_ADMIN_LISTEN_PORT": "1",
        ]
        for other in others {
            #expect(throws: ConfigurationError.self) {
                try load(environment: ["LIMITED_LOGIN_APP_IDS": "123", other.key: other.value])
            }
        }
    }

    @Test("The file named by LIMITED_LOGIN_CONFIG is read")
    func fileVariable() throws {
        let file = try TemporaryFile(contents: #"{"app_ids": ["7"]}"#)
        let loaded = try ConfigurationLoader.load(
            flags: [:],
            environment: ["LIMITED_LOGIN_CONFIG": file.path],
            file: nil
        )
        #expect(loaded.configuration.appIDs == ["7"])
        #expect(loaded.file == file.path)
    }

    @Test("An empty setting in the file counts as not set and has its default")
    func emptyMembers() throws {
        let file = try TemporaryFile(
            contents: #"{"app_ids": ["7"], "issuers": [], "auth_headers": [], "trusted_peers": [], "workers": null}"#
        )
        let loaded = try ConfigurationLoader.load(flags: [:], environment: [:], file: file.path)
        #expect(Set(loaded.settings.keys) == [.appIDs])
        #expect(loaded.configuration.issuers == ["https://www.facebook.com", "https://facebook.com"])
    }

    @Test(
        "Two listeners cannot share a port, unless each has its own address",
        arguments: [
            ("127.0.0.1:8081", "127.0.0.1:8081", false), ("0.0.0.0:8081", "127.0.0.1:8081", false),
            ("127.0.0.1:8081", "0.0.0.0:8081", false), ("0.0.0.0:8081", "0.0.0.0:8081", false),
            ("[::]:8081", "[::1]:8081", false), ("[::1]:8081", "[::]:8081", false),
            ("127.0.0.1:8081", "127.0.0.2:8081", true), ("[::]:8081", "0.0.0.0:8081", true),
            ("0.0.0.0:8081", "[::1]:8081", true), ("0.0.0.0:0", "0.0.0.0:0", true),
            ("0.0.0.0:8080", "0.0.0.0:8081", true),
        ]
    )
    func listeners(service: String, administration: String, isAccepted: Bool) {
        let flags: [ConfigurationKey: String] = [.appIDs: "1", .listen: service, .adminListen: administration]
        let loaded = Result {
            try ConfigurationLoader.load(flags: flags, environment: [:], file: nil, readsDefaultFile: false)
        }
        switch loaded {
        case .success: #expect(isAccepted)
        case .failure(let error): #expect(!isAccepted && "\(error)".hasPrefix("--admin-listen: "))
        }
    }

    @Test("A named file that is missing stops the start, and the message names it")
    func missingFile() {
        #expect {
            try ConfigurationLoader.load(flags: [:], environment: [:], file: "/nonexistent/limited-login.json")
        } throws: { error in
            let text = "\(error)"
            return text.hasPrefix("/nonexistent/limited-login.json: ") && text.contains("No such file")
        }
    }

    @Test(
        "A time has a unit or is in seconds, in every source",
        arguments: [("90", 90), ("90s", 90), ("5m", 300), ("1h", 3_600), ("7d", 604_800), ("0100s", 100)]
    )
    func units(_ text: String, _ seconds: Int) throws {
        let base = ["LIMITED_LOGIN_APP_IDS": "1"]
        let variable = base.merging(["LIMITED_LOGIN_JWKS_MAX_STALE_SECONDS": text]) { $1 }
        #expect(
            try load(flags: [.jwksMaxStaleSeconds: text], environment: base).configuration.jwksMaxStaleSeconds
                == seconds
        )
        #expect(try load(environment: variable).configuration.jwksMaxStaleSeconds == seconds)
        let file = "{\"jwks_max_stale_seconds\": \"\(text)\"}"
        #expect(try load(environment: base, file: file).configuration.jwksMaxStaleSeconds == seconds)
    }

    @Test("Every key can be set by flag, by environment and by file", arguments: ConfigurationKey.allCases)
    func everyKeyFromEverywhere(key: ConfigurationKey) throws {
        let (text, json) = Self.sample(of: key)
        let base = Self.settingsBeside(key)
        var environment = base
        environment[key.environmentName] = text
        let byFlag = try load(flags: [key: text], environment: base)
        let byEnvironment = try load(environment: environment)
        let byFile = try load(environment: base, file: "{\"\(key.rawValue)\": \(json)}")
        #expect(byFlag.configuration == byEnvironment.configuration)
        #expect(byFlag.configuration == byFile.configuration)
        // Keys that are required beside others have no configuration to compare with.
        let bound: [ConfigurationKey] = [
            .appIDs, .tlsCertificateFile, .tlsKeyFile, .callbacksSecretFile, .dataDeletionStatusURL,
            .signingKeysFile,
        ]
        if !bound.contains(key) {
            #expect(byFlag.configuration != (try load(environment: base).configuration))
        }
    }

    /// The settings that the key needs beside it.
    private static func settingsBeside(_ key: ConfigurationKey) -> [String: String] {
        var needed: [ConfigurationKey: String] = [.appIDs: "1"]
        if [.tlsCertificateFile, .tlsKeyFile, .tlsClientCAFile].contains(key) {
            needed[.tlsCertificateFile] = "/tmp/certificate.pem"
            needed[.tlsKeyFile] = "/tmp/key.pem"
        }
        if key == .jwksTTLSeconds { needed[.jwksMinimumTTLSeconds] = "1" }
        if key == .jwksMaximumTTLSeconds { needed[.jwksTTLSeconds] = "300" }
        if key == .accessTokens { needed[.appSecretsFile] = "/tmp/secrets" }
        if [.callbacksURL, .callbacksSecretFile, .dataDeletionStatusURL].contains(key) {
            needed[.appSecretsFile] = "/tmp/secrets"
            needed[.callbacksURL] = "https://backend.example/webhooks"
            needed[.callbacksSecretFile] = "/tmp/whsec"
            needed[.dataDeletionStatusURL] = "https://app.example/deletion"
        }
        let ofTokens: [ConfigurationKey] = [
            .issuer, .signingKeysFile, .tokenAudiences, .tokenClaims, .tokenExtraClaims, .tokenTypeHeader,
            .tokenLifetimeSeconds,
        ]
        if ofTokens.contains(key) {
            needed[.issuer] = "https://login.example"
            needed[.signingKeysFile] = "/tmp/signing-keys"
            needed[.clientKeysFile] = "/tmp/clients"
        }
        if key == .listenMode { needed[.listen] = "unix:/tmp/http.sock" }
        if key == .replayStorePasswordFile { needed[.replayStore] = "redis://cache.example" }
        if key == .replayStoreSentinelPasswordFile { needed[.replayStore] = "redis+sentinel://cache.example/main" }
        needed[key] = nil
        return Dictionary(uniqueKeysWithValues: needed.map { ($0.key.environmentName, $0.value) })
    }

    private static func sample(of key: ConfigurationKey) -> (text: String, json: String) {
        switch key {
        case .appIDs: ("11,22", #"["11", "22"]"#)
        case .issuers: ("https://a.example,https://b.example", #"["https://a.example", "https://b.example"]"#)
        case .jwksURLs: ("http://127.0.0.1:9/a,https://b.example/", #"["http://127.0.0.1:9/a", "https://b.example/"]"#)
        case .jwksFile: ("/tmp/keys.json", #""/tmp/keys.json""#)
        case .caFile: ("/tmp/ca.pem", #""/tmp/ca.pem""#)
        case .clientKeysFile: ("/tmp/clients", #""/tmp/clients""#)
        case .tlsCertificateFile, .tlsKeyFile, .tlsClientCAFile: ("/tmp/other.pem", #""/tmp/other.pem""#)
        case .appSecretsFile: ("/tmp/secrets", #""/tmp/secrets""#)
        case .graphURL, .uninstallURL: ("http://127.0.0.1:9/graph", #""http://127.0.0.1:9/graph""#)
        case .graphVersion: ("v27.1", #""v27.1""#)
        case .callbacksURL, .dataDeletionStatusURL: ("https://other.example/x", #""https://other.example/x""#)
        case .callbacksSecretFile: ("/tmp/other", #""/tmp/other""#)
        case .issuer: ("https://other.example", #""https://other.example""#)
        case .signingKeysFile: ("/tmp/other", #""/tmp/other""#)
        case .tokenAudiences: ("a,b", #"["a", "b"]"#)
        case .tokenClaims: ("name,email", #"["name", "email"]"#)
        case .tokenExtraClaims: (#"{"role":"user"}"#, #""{\"role\":\"user\"}""#)
        case .tokenTypeHeader: ("JWT", #""JWT""#)
        case .listen: ("[::1]:9090", #""[::1]:9090""#)
        case .listenMode: ("0666", #""0666""#)
        case .adminListen: ("127.0.0.1:9091", #""127.0.0.1:9091""#)
        case .binding: ("optional", #""optional""#)
        case .tracking: ("limited", #""limited""#)
        case .accessTokens: ("accept", #""accept""#)
        case .trustedPeers: ("10.0.0.0/8,::1", #"["10.0.0.0/8", "::1"]"#)
        case .gateway: ("enabled", #""enabled""#)
        case .gatewayOrigin: ("https://a.example", #""https://a.example""#)
        case .dpop: ("ignored", #""ignored""#)
        case .authHeaders: ("X-A=sub,X-B=name", #"["X-A=sub", "X-B=name"]"#)
        case .nonceSecretFile, .replayStorePasswordFile, .replayStoreSentinelPasswordFile:
            ("/tmp/secret", #""/tmp/secret""#)
        case .signatureCacheEntries: ("0", "0")
        case .replay: ("reject", #""reject""#)
        case .replayStore: ("rediss://u@cache.example:7000/2", #""rediss://u@cache.example:7000/2""#)
        case .replayStoreCapacity: ("2000", "2000")
        case .logLevel: ("debug", #""debug""#)
        case .auditLog: ("on", #""on""#)
        case .logFormat: ("json", #""json""#)
        case .jwksMinimumTTLSeconds: ("1", "1")
        case .jwksMaximumTTLSeconds: ("301", "301")
        case .workers: ("3", "3")
        case .memoryLimit: ("128MiB", #""128MiB""#)
        default: ("299", "299")
        }
    }
}
