internal import LLGraph
internal import LLHTTPServer
internal import LLSockets
internal import LLStores
internal import LimitedLogin
internal import LimitedLoginKeys

extension ConfigurationKey {
    /// Facebook's JWK Set: Limited Login's own address, then the one that its discovery document names.
    private static let defaultKeySetURLs = [
        "https://limited.facebook.com/.well-known/oauth/openid/jwks/",
        "https://www.facebook.com/.well-known/oauth/openid/jwks/",
    ]

    /// The setting's kind, its default, and the effect of a reload.
    package var definition: (kind: ConfigurationKind, standard: ConfigurationDefault, reload: ConfigurationReload) {
        switch self {
        case .appIDs: (.list, .nothing("none: required"), .takesEffect)
        case .issuers: (.list, .list(VerificationPolicy.defaultIssuers), .takesEffect)
        case .jwksURLs: (.list, .list(Self.defaultKeySetURLs), .needsRestart)
        case .jwksFile: (.file, .nothing("none"), .needsRestart)
        case .caFile: (.file, .nothing("the system's trust store"), .needsRestart)
        case .jwksTTLSeconds: (.duration(1...604_800), .time(JWKSetCacheLimits().timeToLive), .needsRestart)
        case .jwksMinimumTTLSeconds:
            (.duration(1...604_800), .time(JWKSetCacheLimits().minimumTimeToLive), .needsRestart)
        case .jwksMaximumTTLSeconds:
            (.duration(1...604_800), .time(JWKSetCacheLimits().maximumTimeToLive), .needsRestart)
        case .jwksMaxStaleSeconds: (.duration(0...604_800), .time(JWKSetCacheLimits().maximumStaleness), .needsRestart)
        case .listen: (.text, .text("127.0.0.1:8080"), .needsRestart)
        case .listenMode: (.text, .text(UnixSocketMode.standard.description), .needsRestart)
        case .adminListen: (.text, .text("127.0.0.1:8081"), .needsRestart)
        case .workers: (.integer(1...192), .nothing("the cores this process may use"), .needsRestart)
        // The program itself needs more than 16 MiB; 1 TiB is more than any machine that it is made for.
        case .memoryLimit: (.size(16_777_216...1_099_511_627_776), .number(64 * 1_048_576), .needsRestart)
        // Load balancers keep connections for at most 600 s at Google, and at most 4,000 s at AWS.
        case .idleTimeoutSeconds: (.duration(1...7_200), .time(HTTPServerLimits().idleTimeout), .needsRestart)
        case .clockSkewSeconds:
            (
                .duration(0...VerificationLimits.clockSkewSeconds), .number(VerificationPolicy.defaultClockSkewSeconds),
                .takesEffect
            )
        case .maxTokenAgeSeconds: (.duration(1...31_536_000), .nothing("none"), .takesEffect)
        case .binding: (.choice(["required", "optional"]), .text("required"), .takesEffect)
        case .tracking: (.choice(["any", "limited"]), .text("any"), .takesEffect)
        case .accessTokens: (.choice(["refuse", "accept"]), .text("refuse"), .takesEffect)
        case .clientKeysFile: (.secretFile, .nothing("none: anybody who reaches the listener may call"), .guards)
        case .tlsCertificateFile: (.file, .nothing("none: plain HTTP"), .rereads)
        case .tlsKeyFile: (.secretFile, .nothing("none"), .rereads)
        case .tlsClientCAFile: (.file, .nothing("none: no client certificate is asked for"), .guards)
        case .trustedPeers: (.list, .nothing("none"), .needsRestart)
        case .gateway: (.choice(["disabled", "enabled"]), .text("disabled"), .takesEffect)
        case .gatewayOrigin: (.text, .nothing("none: X-Forwarded-Proto and X-Forwarded-Host tell them"), .takesEffect)
        case .dpop: (.choice(DPoPDemand.allCases.map(\.rawValue)), .text(DPoPDemand.ifSent.rawValue), .takesEffect)
        case .authHeaders: (.list, .list(AuthField.standard.map(\.description)), .takesEffect)
        case .signatureCacheEntries:
            (
                .integer(0...VerifiedSignatureCache.greatestCapacity), .number(VerifiedSignatureCache.defaultCapacity),
                .needsRestart
            )
        case .nonceSecretFile: (.secretFile, .nothing("none: no nonces are issued"), .guards)
        case .nonceTTLSeconds:
            (
                .duration(1...NonceIssuer.greatestLifetimeSeconds), .number(NonceIssuer.defaultLifetimeSeconds),
                .takesEffect
            )
        case .replay: (.choice(["accept", "reject"]), .text("accept"), .takesEffect)
        case .replayStore: (.text, .text("memory"), .needsRestart)
        case .replayStorePasswordFile, .replayStoreSentinelPasswordFile:
            (.secretFile, .nothing("none"), .needsRestart)
        case .replayStoreCapacity: (.integer(1_000...10_000_000), .number(ReplayLimits.defaultCapacity), .needsRestart)
        case .appSecretsFile:
            (.secretFile, .nothing("none: the routes for permissions and callbacks are 404"), .rereads)
        case .graphURL: (.text, .text(GraphConfiguration.standardURL), .needsRestart)
        case .graphVersion: (.text, .text(GraphConfiguration.standardVersion), .needsRestart)
        case .uninstallURL: (.text, .text(GraphConfiguration.standardUninstallURL), .needsRestart)
        case .callbacksURL: (.text, .nothing("none: the backend is not told"), .rereads)
        case .callbacksSecretFile: (.secretFile, .nothing("none: callbacks_url needs it"), .rereads)
        case .dataDeletionStatusURL: (.text, .nothing("none: callbacks_url needs it"), .rereads)
        case .issuer: (.text, .nothing("none: no tokens are issued"), .needsRestart)
        case .signingKeysFile: (.secretFile, .nothing("none: issuer is refused without such a file"), .rereads)
        case .tokenAudiences: (.list, .nothing("the issuer itself"), .takesEffect)
        case .tokenClaims: (.list, .nothing("none"), .takesEffect)
        case .tokenExtraClaims: (.text, .nothing("none"), .takesEffect)
        case .tokenTypeHeader:
            (.choice(TokenIssuer.AccessTokenType.allCases.map(\.rawValue)), .text("at+jwt"), .takesEffect)
        case .tokenLifetimeSeconds:
            (
                .duration(TokenIssuerPolicy.lifetimeRange), .number(TokenIssuerPolicy.defaultLifetimeSeconds),
                .takesEffect
            )
        case .drainDelaySeconds: (.duration(0...300), .number(0), .needsRestart)
        case .logLevel:
            (
                .choice(["trace", "debug", "info", "notice", "warning", "error", "critical"]), .text("info"),
                .takesEffect
            )
        case .logFormat: (.choice(["json", "text"]), .nothing("text on a terminal, else json"), .needsRestart)
        case .auditLog: (.choice(["off", "on"]), .text("off"), .needsRestart)
        }
    }

    /// One sentence about the setting's purpose.
    package var summary: String {
        switch self {
        case .appIDs: "The Facebook app ids whose tokens are accepted (the claim aud must be one of them)."
        case .issuers: "The issuers accepted in the claim iss, compared exactly."
        case .jwksURLs: "Where the issuer's JWK Set is fetched, in order; https, or http on a loopback address."
        case .jwksFile: "A file that seeds the key cache at start and is rewritten after each good fetch."
        case .caFile:
            "Certificates (PEM) to trust instead of the system's, for every connection that the service makes."
        case .jwksTTLSeconds: "How long keys stay fresh when the answer names no max-age."
        case .jwksMinimumTTLSeconds: "The least time to live, whatever the answer's max-age says."
        case .jwksMaximumTTLSeconds: "The greatest time to live, whatever the answer's max-age says."
        case .jwksMaxStaleSeconds:
            "How long past their expiry the last good keys keep verifying while the source is down."
        case .listen: "Address and port of the service, HOST:PORT (port 0 takes a free one), or unix:/PATH."
        case .listenMode: "Permissions of the socket's file where listen is unix:/PATH: octal, 0600 to 0777."
        case .adminListen: "Address and port of the administrative listener (health and metrics), HOST:PORT."
        case .workers: "How many event loops serve requests."
        case .memoryLimit: "The memory to keep to; connections take half of it, then idle ones close first."
        case .idleTimeoutSeconds:
            "How long the service keeps an idle connection; your balancer must close its own sooner."
        case .clockSkewSeconds: "The difference between our clock and the issuer's that is forgiven."
        case .maxTokenAgeSeconds: "The greatest age of a token since its claim iat."
        case .binding:
            "Whether POST /verify asks what ties each token to its login; with optional a stolen token is good until it expires."
        case .tracking: "Whether tokens that came with an access token (tracking enabled) are accepted."
        case .accessTokens:
            "Whether POST /verify takes access tokens too and asks Graph about them; they are tied to no login."
        case .clientKeysFile: "A file of the callers' names and the SHA-256 of their keys; without a key, 401."
        case .tlsCertificateFile: "The certificate chain (PEM) with which the service's listener speaks TLS."
        case .tlsKeyFile: "The private key (PEM) of the certificate."
        case .tlsClientCAFile: "Authorities (PEM) of the callers' certificates; without one, no handshake."
        case .trustedPeers:
            "Addresses or CIDR prefixes of gateways and other peers that many clients share: "
                + "their connections are not closed because they are many."
        case .gateway: "Whether /auth answers gateways; the bearer tokens it judges are tied to no login."
        case .gatewayOrigin:
            "Scheme and host of the clients' requests, such as https://api.example.com, for DPoP proofs."
        case .dpop:
            "Whether /auth judges DPoP proofs, and whether it refuses a token without one that is bound to a key."
        case .authHeaders: "The fields in which /auth tells claims: a list of FIELD=CLAIM, in place of the default one."
        case .signatureCacheEntries:
            "How many good signatures each worker remembers for /auth and /introspect; 0 for none. "
                + "All workers together have a sixteenth of memory_limit for them."
        case .nonceSecretFile: "A file of one or two secrets: the first issues nonces, both recognise them."
        case .nonceTTLSeconds: "How long an issued nonce is good."
        case .replay: "Whether POST /verify and /token accept a token (its claim jti) again, or only once."
        case .replayStore:
            "Where used nonces, tokens and proofs, and revocations, are remembered: memory, or for replicas redis:// or rediss://, "
                + "also with +cluster or +sentinel."
        case .replayStorePasswordFile: "A file with the password of the Redis server, instead of one in its URL."
        case .replayStoreSentinelPasswordFile: "The sentinels have a password of their own: a file with it."
        case .replayStoreCapacity: "How many used nonces, tokens and proofs are remembered in memory; beyond that, 503."
        case .appSecretsFile: "A file of the apps' ids and secrets, for Graph and for Facebook's callbacks."
        case .graphURL: "Where Facebook's Graph API is; https, or http on a loopback address."
        case .graphVersion: "The version of the Graph API, such as v26.0."
        case .uninstallURL: "Where Limited Login uninstalls an app; https, or http on a loopback address."
        case .callbacksURL:
            "Where your backend takes webhooks of Facebook's callbacks; https, or http on a loopback address."
        case .callbacksSecretFile: "A file of one or two secrets (whsec_…) that sign the webhooks."
        case .dataDeletionStatusURL:
            "The page that tells people what became of their data, where the backend names none."
        case .issuer:
            "The claim iss of the tokens that POST /token issues: the https URL at which others reach the service."
        case .signingKeysFile:
            "The private keys (PEM) of issued tokens: the first signs, and the public half of each is published."
        case .tokenAudiences: "The audiences that an issued token may have; the first one if the caller names none."
        case .tokenClaims:
            "What issued tokens tell of the person: name, given_name, middle_name, family_name, email, picture."
        case .tokenExtraClaims:
            "More claims of issued tokens: a JSON object of at most 1 KiB, such as {\"role\": \"user\"}."
        case .tokenTypeHeader: "The typ of issued access tokens: RFC 9068's, or JWT for consumers that refuse it."
        case .tokenLifetimeSeconds: "How long an issued token is good; never longer than the login's own token."
        case .drainDelaySeconds: "How long the listeners stay open after SIGTERM, while readiness already fails."
        case .logLevel: "The least severity that is logged."
        case .logFormat: "Whether log lines are JSON objects or text."
        case .auditLog:
            "Whether each answer of /auth, /verify and /token has a line in the log: who by hash, what, the outcome."
        }
    }
}
