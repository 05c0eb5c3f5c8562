import LLHTTP
import Testing

@testable import LLService

@Suite("Configuration: sources, precedence and mistakes")
struct ConfigurationLoaderTests {
    @Test("A flag overrides the environment, and the environment overrides the file")
    func precedence() throws {
        let configuration = try load(
            ["clock_skew_seconds": "30"],
            environment: ["LIMITED_LOGIN_CLOCK_SKEW_SECONDS": "20", "LIMITED_LOGIN_WORKERS": "2"],
            file: #"{"app_ids": ["1"], "clock_skew_seconds": 10, "workers": 3, "jwks_ttl_seconds": 400}"#
        )
        #expect(configuration.clockSkew == .seconds(30) && configuration.workers == 2)
        #expect(configuration.jwksTTL == .seconds(400))
    }

    @Test("PORT is the port of listen on every address, unless listen is set")
    func hostedPort() throws {
        let app = ["LIMITED_LOGIN_APP_IDS": "123", "PORT": "9999"]
        let hosted = try load(environment: app)
        #expect(hosted.listen.description == "0.0.0.0:9999")
        #expect(hosted.settings["listen"]?.origin == .environment("PORT"))
        let named = app.merging(["LIMITED_LOGIN_LISTEN": "127.0.0.1:7"]) { $1 }
        #expect(try load(environment: named).listen.description == "127.0.0.1:7")
        #expect(try load(["listen": "127.0.0.1:8"], environment: app).listen.description == "127.0.0.1:8")
        #expect(try load(environment: app, file: #"{"listen": "127.0.0.1:9"}"#).listen.description == "127.0.0.1:9")
        #expect(try load(environment: app, file: #"{"listen": null}"#).listen.description == "0.0.0.0:9999")
        // A command that does not read `listen` ignores PORT.
        #expect(try load(environment: ["PORT": "http"], only: [Settings.all.adminListen.row]).settings.isEmpty)
    }

    @Test("Variables that Kubernetes makes for a Service with our prefix are ignored; misspelt ones stop the start")
    func serviceLinks() throws {
        let links = [
            "LIMITED_LOGIN_SERVICE_HOST": "10.0.0.7", "LIMITED_LOGIN_SERVICE_PORT": "80",
            "LIMITED_LOGIN_SERVICE_PORT_HTTP": "80", "LIMITED_LOGIN_PORT": "tcp://10.0.0.7:80",
            "LIMITED_LOGIN_PORT_80_TCP": "tcp://10.0.0.7:80", "LIMITED_LOGIN_PORT_80_TCP_PROTO": "tcp",
            "LIMITED_LOGIN_PORT_80_TCP_PORT": "80", "LIMITED_LOGIN_PORT_80_TCP_ADDR": "10.0.0.7",
            "LIMITED_LOGIN_PORT_9_SCTP": "sctp://10.0.0.7:9",
            "LIMITED_LOGIN_REDIS_MASTER_SERVICE_HOST": "10.0.0.8", "LIMITED_LOGIN_REDIS_MASTER_SERVICE_PORT": "6379",
            "LIMITED_LOGIN_REDIS_MASTER_PORT_6379_TCP_ADDR": "10.0.0.8", "LIMITED_LOGIN_APP_IDS": "123",
        ]
        #expect(try Set(load(environment: links).settings.keys) == ["app_ids"])
        let others = [
            "LIMITED_LOGIN_PORT": "8080", "LIMITED_LOGIN_PORT_X_TCP": "1", "LIMITED_LOGIN_PORT_80": "1",
            "LIMITED_LOGIN_SERVICE": "1", "LIMITED_LOGIN_PORT_80_QUIC": "1", "LIMITED_LOGIN_ADMIN_PORT": "8081",
            "LIMITED_LOGIN_SERVICE_HOSTS": "a", "LIMITED_LOGIN_ADMIN_LISTEN_PORT": "1",
        ]
        for other in others {
            #expect(throws: ConfigurationError.self) {
                try load(environment: ["LIMITED_LOGIN_APP_IDS": "123", other.key: other.value])
            }
        }
    }

    @Test("The file named by LIMITED_LOGIN_CONFIG is read; an empty setting in it has its default")
    func fileVariable() throws {
        let file = try TemporaryFile(
            contents: #"{"app_ids": ["7"], "issuers": [], "auth_headers": [], "trusted_peers": [], "workers": null}"#
        )
        let environment = ["LIMITED_LOGIN_CONFIG": file.path]
        let loaded = try ConfigurationLoader.load(flags: [:], environment: environment, file: nil)
        #expect(loaded.appIDs == ["7"] && loaded.file == file.path && Set(loaded.settings.keys) == ["app_ids"])
        #expect(loaded.issuers == ["https://www.facebook.com", "https://facebook.com"])
    }

    @Test(
        "A time has a unit or is in seconds, in every source",
        arguments: [("90", 90), ("90s", 90), ("5m", 300), ("1h", 3_600), ("7d", 604_800), ("0100s", 100)]
    )
    func units(_ text: String, _ seconds: Int) throws {
        let base = ["LIMITED_LOGIN_APP_IDS": "1"]
        #expect(try load(["jwks_max_stale_seconds": text], environment: base).jwksMaximumStaleness == .seconds(seconds))
        let file = "{\"jwks_max_stale_seconds\": \"\(text)\"}"
        #expect(try load(environment: base, file: file).jwksMaximumStaleness == .seconds(seconds))
    }

    @Test(
        "A value that may be a secret is not told when no file has its name",
        arguments: [
            ("5f0c1a527b0e4d2b9a476f3a2c1b0d9e", false), ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", false),
            ("AAaa/bb+cc11dd22ee33ff44gg55hh66ii77jj88kk=", false), ("-----BEGIN PRIVATE KEY-----\nMIIE", false),
            ("/etc/limited-login/nonce-secret", true), ("./secret1", true), ("nonce-secret", true),
            ("secrets/nonce-secret-2", true),
        ]
    )
    func pastedSecrets(value: String, isTold: Bool) {
        let error = #expect(throws: ConfigurationError.self) { try FileLine.text(ofFile: value, limit: 100) }
        #expect(error?.description.contains(value.prefix(12)) == isTold, "\(error)")
    }

    @Test("All mistakes are reported at once, without those that only follow from another one")
    func several() throws {
        let file = """
            {"app_id": ["1"], "workers": "two", "listen": "8080", "listen_mode": "0666", "replay_store": "redis",
             "replay_store_password_file": "p", "access_tokens": "accept", "app_secrets_file": 5, "gateway": "on",
             "issuer": "https://i.example", "jwks_ttl_seconds": 10}
            """
        let environment = ["LIMITED_LOGIN_WORKER": "2", "LIMITED_LOGIN_TRUSTED_PEERS": "gateway"]
        let error = try #require(throws: ConfigurationError.self) {
            try load(["clock_skew_seconds": "1e2"], environment: environment, file: file)
        }
        let told = [
            "unknown key 'app_id'", "workers: ", "app_secrets_file: ", "LIMITED_LOGIN_WORKER: ",
            "--clock-skew-seconds: ", "listen: ", "LIMITED_LOGIN_TRUSTED_PEERS: ", "gateway: ", "replay_store: ",
            "jwks_ttl_seconds: 10s is outside 5m to 1d", "issuer: set client_keys_file and signing_keys_file too",
        ]
        #expect(error.sentences.count == told.count, "\(error.sentences)")
        for (sentence, part) in zip(error.sentences, told) { #expect(sentence.contains(part)) }
        #expect(error.description == error.sentences.joined(separator: "; "))
    }
}
