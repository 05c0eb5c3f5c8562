internal import Graph
internal import KeySets
internal import LimitedLogin
internal import LoginStores
internal import Sockets

extension ConfigurationKey {
    /// Facebook's JWK Set: Limited Login's own address, then the one that its discovery document names.
    private static let defaultKeySetURLs = [
        "https://limited.facebook.com/.well-known/oauth/openid/jwks/",
        "https://www.facebook.com/.well-known/oauth/openid/jwks/",
    ]

    package var definition: ConfigurationDefinition {
        switch self {
        case .appIDs:
            .init(.list, default: .nothing("none: required"), reload: .takesEffect) {
                "The Facebook app ids whose tokens are accepted (the claim aud must be one of them)."
            }
        case .issuers:
            .init(.list, default: .list(VerificationPolicy.defaultIssuers), reload: .takesEffect) {
                "The issuers accepted in the claim iss, compared exactly."
            }
        case .jwksURLs:
            .init(.list, default: .list(Self.defaultKeySetURLs)) {
                "Where the issuer's JWK Set is fetched, in order; https, or http on a loopback address."
            }
        case .jwksFile:
            .init(.file, default: .nothing("none")) {
                "A file that seeds the key cache at start and is rewritten after each good fetch."
            }
        case .caFile:
            .init(.file, default: .nothing("the system's trust store")) {
                "Certificates (PEM) to trust instead of the system's, for every connection that the service makes."
            }
        case .jwksTTLSeconds:
            .init(.duration(1...604_800), default: .time(JWKSetCacheLimits().timeToLive)) {
                "How long keys stay fresh when the answer names no max-age."
            }
        case .jwksMinimumTTLSeconds:
            .init(.duration(1...604_800), default: .time(JWKSetCacheLimits().minimumTimeToLive)) {
                "The least time to live, whatever the answer's max-age says."
            }
        case .jwksMaximumTTLSeconds:
            .init(.duration(1...604_800), default: .time(JWKSetCacheLimits().maximumTimeToLive)) {
                "The greatest time to live, whatever the answer's max-age says."
            }
        case .jwksMaxStaleSeconds:
            .init(.duration(0...604_800), default: .time(JWKSetCacheLimits().maximumStaleness)) {
                "How long past their expiry the last good keys keep verifying while the source is down."
            }
        case .listen:
            .init(.text, default: .text("127.0.0.1:8080")) {
                "Address and port of the service, HOST:PORT (port 0 takes a free one), or unix:/PATH."
            }
        case .listenMode:
            .init(.text, default: .text(UnixSocketMode.standard.description)) {
                "Permissions of the socket's file where listen is unix:/PATH: octal, 0600 to 0777."
            }
        case .adminListen:
            .init(.text, default: .text("127.0.0.1:8081")) {
                "Address and port of the administrative listener (health and metrics), HOST:PORT."
            }
        case .workers:
            .init(.integer(1...256), default: .nothing("the cores this process may use")) {
                "How many event loops serve requests."
            }
        case .memoryLimit:
            // Below 16 MiB the program itself has no room; 1 TiB is more than any machine it is made for.
            .init(.size(16_777_216...1_099_511_627_776), default: .number(64 * 1_048_576)) {
                "The memory to keep to; connections take half of it, then the largest is closed."
            }
        case .clockSkewSeconds:
            .init(
                .duration(0...VerificationLimits.clockSkewSeconds),
                default: .number(VerificationPolicy.defaultClockSkewSeconds),
                reload: .takesEffect
            ) {
                "The difference between our clock and the issuer's that is forgiven."
            }
        case .maxTokenAgeSeconds:
            .init(.duration(1...31_536_000), default: .nothing("none"), reload: .takesEffect) {
                "The greatest age of a token since its claim iat."
            }
        case .binding:
            .init(.choice(["required", "optional"]), default: .text("required"), reload: .takesEffect) {
                "Whether POST /verify asks what ties each token to its login; with optional a stolen token is good until it expires."
            }
        case .tracking:
            .init(.choice(["any", "limited"]), default: .text("any"), reload: .takesEffect) {
                "Whether tokens that came with an access token (tracking enabled) are accepted."
            }
        case .accessTokens:
            .init(.choice(["refuse", "accept"]), default: .text("refuse"), reload: .takesEffect) {
                "Whether POST /verify takes access tokens too and asks Graph about them; they are tied to no login."
            }
        case .clientKeysFile:
            .init(.secretFile, default: .nothing("none: anybody who reaches the listener may call"), reload: .guards) {
                "A file of the callers' names and the SHA-256 of their keys; without a key, 401."
            }
        case .tlsCertificateFile:
            .init(.file, default: .nothing("none: plain HTTP"), reload: .rereads) {
                "The certificate chain (PEM) with which the service's listener speaks TLS."
            }
        case .tlsKeyFile:
            .init(.secretFile, default: .nothing("none"), reload: .rereads) {
                "The private key (PEM) of the certificate."
            }
        case .tlsClientCAFile:
            .init(.file, default: .nothing("none: no client certificate is asked for"), reload: .guards) {
                "Authorities (PEM) of the callers' certificates; without one, no handshake."
            }
        case .trustedPeers:
            .init(.list, default: .nothing("none")) {
                "Addresses or CIDR prefixes of gateways and other peers that many clients share: "
                    + "their connections are not closed because they are many."
            }
        case .gateway:
            .init(.choice(["disabled", "enabled"]), default: .text("disabled"), reload: .takesEffect) {
                "Whether /auth answers gateways; the bearer tokens it judges are tied to no login."
            }
        case .gatewayOrigin:
            .init(
                .text,
                default: .nothing("none: X-Forwarded-Proto and X-Forwarded-Host tell them"),
                reload: .takesEffect
            ) {
                "Scheme and host of the clients' requests, such as https://api.example.com, for DPoP proofs."
            }
        case .dpop:
            .init(
                .choice(DPoPDemand.allCases.map(\.rawValue)),
                default: .text(DPoPDemand.ifSent.rawValue),
                reload: .takesEffect
            ) {
                "Whether /auth judges DPoP proofs, and whether it refuses a token without one that is bound to a key."
            }
        case .authHeaders:
            .init(.list, default: .list(AuthField.standard.map(\.description)), reload: .takesEffect) {
                "The fields in which /auth tells claims: a list of FIELD=CLAIM, in place of the default one."
            }
        case .signatureCacheEntries:
            .init(.integer(0...SignatureMemory.greatestCapacity), default: .number(SignatureMemory.defaultCapacity)) {
                "How many good signatures each worker remembers for /auth and /introspect; 0 for none."
            }
        case .nonceSecretFile:
            .init(.secretFile, default: .nothing("none: no nonces are issued"), reload: .guards) {
                "A file of one or two secrets: the first issues nonces, both recognise them."
            }
        case .nonceTTLSeconds:
            .init(
                .duration(1...NonceIssuer.greatestLifetimeSeconds),
                default: .number(NonceIssuer.defaultLifetimeSeconds),
                reload: .takesEffect
            ) {
                "How long an issued nonce is good."
            }
        case .replay:
            .init(.choice(["accept", "reject"]), default: .text("accept"), reload: .takesEffect) {
                "Whether POST /verify accepts a token (its claim jti) again, or only once."
            }
        case .replayStore:
            .init(.text, default: .text("memory")) {
                "Where used nonces, tokens and proofs, and revocations, are remembered: memory, or redis:// or rediss:// for replicas."
            }
        case .replayStorePasswordFile:
            .init(.secretFile, default: .nothing("none")) {
                "A file with the password of the Redis server, instead of one in its URL."
            }
        case .replayStoreCapacity:
            .init(.integer(1_000...10_000_000), default: .number(ReplayLimits.defaultCapacity)) {
                "How many used nonces, tokens and proofs are remembered in memory; beyond that, 503."
            }
        case .appSecretsFile:
            .init(
                .secretFile,
                default: .nothing("none: the routes for permissions and callbacks are 404"),
                reload: .rereads
            ) {
                "A file of the apps' ids and secrets, for Graph and for Facebook's callbacks."
            }
        case .graphURL:
            .init(.text, default: .text(GraphConfiguration.standardURL)) {
                "Where Facebook's Graph API is; https, or http on a loopback address."
            }
        case .graphVersion:
            .init(.text, default: .text(GraphConfiguration.standardVersion)) {
                "The version of the Graph API, such as v26.0."
            }
        case .uninstallURL:
            .init(.text, default: .text(GraphConfiguration.standardUninstallURL)) {
                "Where Limited Login uninstalls an app; https, or http on a loopback address."
            }
        case .callbacksURL:
            .init(.text, default: .nothing("none: the backend is not told"), reload: .rereads) {
                "Where your backend takes webhooks of Facebook's callbacks; https, or http on a loopback address."
            }
        case .callbacksSecretFile:
            .init(.secretFile, default: .nothing("none: callbacks_url needs it"), reload: .rereads) {
                "A file of one or two secrets (whsec_…) that sign the webhooks."
            }
        case .dataDeletionStatusURL:
            .init(.text, default: .nothing("none: callbacks_url needs it"), reload: .rereads) {
                "The page that tells people what became of their data, where the backend names none."
            }
        case .drainDelaySeconds:
            .init(.duration(0...300), default: .number(0)) {
                "How long the listeners stay open after SIGTERM, while readiness already fails."
            }
        case .logLevel:
            .init(
                .choice(["trace", "debug", "info", "notice", "warning", "error", "critical"]),
                default: .text("info"),
                reload: .takesEffect
            ) {
                "The least severity that is logged."
            }
        case .logFormat:
            .init(.choice(["json", "text"]), default: .nothing("text on a terminal, else json")) {
                "Whether log lines are JSON objects or text."
            }
        case .auditLog:
            .init(.choice(["off", "on"]), default: .text("off")) {
                "Whether each answer of /auth and /verify has a line in the log: who by hash, what, the outcome."
            }
        }
    }
}
