import Testing

@testable import LLService

@Suite("Settings that may be a mistake")
struct ConfigurationWarningTests {
    private static let required: [ConfigurationKey: String] = [.appIDs: "123"]

    private static func warnings(_ flags: [ConfigurationKey: String]) throws -> [String] {
        let flags = required.merging(flags) { $1 }
        return try ConfigurationLoader.load(flags: flags, environment: [:], file: nil, readsDefaultFile: false)
            .configuration.warnings
    }

    /// Settings that open access or have no effect, with words of their one warning.
    private static let doubtful: [([ConfigurationKey: String], [String])] = [
        ([.dpop: "required_if_bound"], ["dpop", "gateway is not enabled"]),
        ([.gatewayOrigin: "https://api.example.com"], ["gateway_origin", "gateway is not enabled"]),
        ([.authHeaders: "X-Person=sub"], ["auth_headers", "gateway is not enabled"]),
        ([.tokenLifetimeSeconds: "300"], ["token_lifetime_seconds", "issuer is not"]),
        ([.tokenTypeHeader: "JWT"], ["token_type_header", "issuer is not"]),
        ([.gateway: "enabled"], ["if_sent", "passes as Bearer", "RFC 9449 section 7.2"]),
        ([.gateway: "enabled", .dpop: "ignored"], ["ignored", "passes as Bearer"]),
        ([.gateway: "enabled", .dpop: "required_if_bound"], ["gateway_origin is not set", "X-Forwarded-Host"]),
        ([.listen: "unix:/run/x/socket", .listenMode: "0777"], ["every user of this machine", "0777"]),
        ([.listen: "unix:/run/x/socket", .listenMode: "0662"], ["every user of this machine", "0662"]),
        ([.issuers: "https://www.facebook.com/"], ["'https://www.facebook.com/' ends with a slash"]),
        ([.trustedPeers: "0.0.0.0/0"], ["trusted_peers", "every address"]),
        ([.trustedPeers: "10.0.0.0/8,::/0"], ["trusted_peers", "every address"]),
        ([.binding: "optional"], ["binding is optional", "stolen"]),
        ([.accessTokens: "accept", .appSecretsFile: "/none"], ["access_tokens is accept", "client_keys_file"]),
        ([.listen: "0.0.0.0:8080"], ["0.0.0.0:8080", "open to anybody"]),
        ([.jwksFile: "/nonexistent/keys.json"], ["jwks_file", "/nonexistent (no such file or directory)"]),
        ([.jwksFile: "/dev/null/keys.json"], ["jwks_file", "/dev/null (not a directory)"]),
    ]

    @Test("Each gives one warning", arguments: doubtful)
    func told(flags: [ConfigurationKey: String], words: [String]) throws {
        let warnings = try Self.warnings(flags)
        #expect(warnings.count == 1, "\(warnings)")
        for word in words { #expect(warnings.first?.contains(word) == true, "\(word): \(warnings)") }
    }

    @Test("A reload reports exactly the settings that it makes less strict, with the values before and after")
    func weakenings() throws {
        func configuration(_ flags: [ConfigurationKey: String]) throws -> ServiceConfiguration {
            let flags = Self.required.merging(flags) { $1 }
            return try ConfigurationLoader.load(flags: flags, environment: [:], file: nil, readsDefaultFile: false)
                .configuration
        }
        let strict = try configuration([.tracking: "limited", .replay: "reject", .dpop: "required_if_bound"])
        let lax = try configuration([.binding: "optional", .dpop: "ignored"])
        let told = lax.weakenings(since: strict).map { "\($0.key.rawValue): \($0.old), \($0.new)" }
        #expect(
            told == [
                "binding: required, optional", "tracking: limited, any", "replay: reject, accept",
                "dpop: required_if_bound, ignored",
            ]
        )
        #expect(strict.weakenings(since: lax).isEmpty && lax.weakenings(since: lax).isEmpty)
        #expect(try configuration([.dpop: "ignored"]).weakenings(since: configuration([:])).map(\.old) == ["if_sent"])
    }

    @Test(
        "A good setting gives no warning",
        arguments: [
            [:], [.dpop: "if_sent"], [.tokenLifetimeSeconds: "600"], [.listen: "unix:/run/x/socket"],
            [.issuers: "https://www.facebook.com"],
            [.listen: "unix:/run/x/socket", .listenMode: "0777", .clientKeysFile: "/none"],
            [.listen: "unix:/run/x/socket", .listenMode: "0664"], [.trustedPeers: "10.0.0.0/8,fd00::/8"],
            [.gateway: "enabled", .dpop: "required_if_bound", .gatewayOrigin: "https://api.example.com"],
            [.accessTokens: "accept", .appSecretsFile: "/none", .clientKeysFile: "/none"],
            [.listen: "0.0.0.0:8080", .clientKeysFile: "/none"], [.jwksFile: "/tmp/keys.json"],
            [.jwksFile: "keys.json"],
        ] as [[ConfigurationKey: String]]
    )
    func untold(flags: [ConfigurationKey: String]) throws {
        #expect(try Self.warnings(flags) == [])
    }
}
