package import LLHTTP
package import LLStores
package import LimitedLogin
internal import LimitedLoginKeys
package import Logging

/// Every setting of the service, in the order of the documents: one row for each, and nothing else to add for a new one.
///
/// A row tells name, kind and bounds, default, the effect of a reload, and a sentence about its purpose. A value is read
/// as the member of the same name of ``ServiceConfiguration``. Settings that do not go together are refused there.
package struct Settings: Sendable {
    package static let all = Settings()
    package static let rows = Mirror(reflecting: all).children.compactMap { ($0.value as? any AnySetting)?.row }

    // Tokens and keys.
    package let appIDs = Setting("app_ids", each: Read.appID)
        .ifUnset("none: required")
        .atOnce("The Facebook app ids whose tokens are accepted (the claim aud must be one of them).")
    package let issuers = Setting("issuers", VerificationPolicy.defaultIssuers, each: Read.issuer)
        .atOnce("The issuers accepted in the claim iss, compared exactly.")
    package let jwksURLs = Setting("jwks_urls", defaultKeySetURLs, each: Read.urlText)
        .restart("Where the issuer's JWK Set is fetched, in order; https, or http on a loopback address.")
    package let jwksFile = Setting<String?>("jwks_file", .file)
        .restart("A file that seeds the key cache at start and is rewritten after each good fetch.")
    package let caFile = Setting<String?>("ca_file", .file)
        .ifUnset("the system's trust store")
        .restart("Certificates (PEM) to trust instead of the system's, for every connection that the service makes.")
    package let jwksTTL = Setting("jwks_ttl_seconds", 1...week, keys.timeToLive)
        .restart("How long keys stay fresh when the answer names no max-age.")
    package let jwksMinimumTTL = Setting("jwks_minimum_ttl_seconds", 1...week, keys.minimumTimeToLive)
        .restart("The least time to live, whatever the answer's max-age says.")
    package let jwksMaximumTTL = Setting("jwks_maximum_ttl_seconds", 1...week, keys.maximumTimeToLive)
        .restart("The greatest time to live, whatever the answer's max-age says.")
    package let jwksMaximumStaleness = Setting("jwks_max_stale_seconds", 0...week, keys.maximumStaleness)
        .restart("How long past their expiry the last good keys keep verifying while the source is down.")

    // Listeners.
    package let listen = Setting("listen", ListenAddress.loopback(port: 8080), Read.listenAddress)
        .restart("Address and port of the service, HOST:PORT (port 0 takes a free one), or unix:/PATH.")
    package let listenMode = Setting("listen_mode", UnixSocketMode.standard, Read.socketMode)
        .restart("Permissions of the socket's file where listen is unix:/PATH: octal, 0600 to 0777.")
    package let adminListen = Setting("admin_listen", SocketAddress.loopback(port: 8081), Read.adminAddress)
        .restart("Address and port of the administrative listener (health and metrics), HOST:PORT.")
    package let workers = Setting<Int?>("workers", .integer(1...192))
        .ifUnset("the cores this process may use")
        .restart("How many event loops serve requests.")
    /// The limit in the configuration; a smaller limit of the process's control group takes precedence.
    // The program itself needs more than 16 MiB; 1 TiB is more than any machine that it is made for.
    package let memoryLimitBytes = Setting("memory_limit", .size(16 << 20...1 << 40), 64 << 20)
        .restart("The memory to keep to; connections take half of it, then idle ones close first.")
    // Load balancers keep connections for at most 600 s at Google, and at most 4,000 s at AWS.
    package let idleTimeout = Setting("idle_timeout_seconds", 1...7_200, HTTPServerLimits().idleTimeout)
        .restart("How long the service keeps an idle connection; your balancer must close its own sooner.")

    // The verdict.
    package let clockSkew = Setting("clock_skew_seconds", 0...greatestSkew, VerificationPolicy.defaultClockSkew)
        .atOnce("The difference between our clock and the issuer's that is forgiven.")
    package let maxTokenAgeSeconds = Setting<Int?>("max_token_age_seconds", .duration(1...31_536_000))
        .atOnce("The greatest age of a token since its claim iat.")
    package let bindingIsRequired = Setting("binding", ["required", "optional"], isTrueIf: "required")
        .atOnce(
            "Whether POST /verify asks what ties each token to its login; with optional a stolen token is good until it expires."
        )
        .fromStrictest(["required", "optional"])
    package let onlyLimitedTracking = Setting("tracking", ["any", "limited"], isTrueIf: "limited")
        .atOnce("Whether tokens that came with an access token (tracking enabled) are accepted.")
        .fromStrictest(["limited", "any"])
    package let accessTokensAreAccepted = Setting("access_tokens", ["refuse", "accept"], isTrueIf: "accept")
        .atOnce("Whether POST /verify takes access tokens too and asks Graph about them; they are tied to no login.")

    // Callers and peers.
    package let clientKeysFile = Setting<String?>("client_keys_file", .secretFile)
        .ifUnset("none: anybody who reaches the listener may call")
        .guarding("A file of the callers' names and the SHA-256 of their keys; without a key, 401.")
    package let tlsCertificateFile = Setting<String?>("tls_certificate_file", .file)
        .ifUnset("none: plain HTTP")
        .reread("The certificate chain (PEM) with which the service's listener speaks TLS.")
    package let tlsKeyFile = Setting<String?>("tls_key_file", .secretFile)
        .reread("The private key (PEM) of the certificate.")
    package let tlsClientCAFile = Setting<String?>("tls_client_ca_file", .file)
        .ifUnset("none: no client certificate is asked for")
        .guarding("Authorities (PEM) of the callers' certificates; without one, no handshake.")
    package let trustedPeers = Setting("trusted_peers", each: Read.addressPrefix)
        .restart(
            "Addresses or CIDR prefixes of gateways and other peers that many clients share: their connections are not closed because they are many."
        )

    // The gateway routes.
    package let gatewayIsEnabled = Setting("gateway", ["disabled", "enabled"], isTrueIf: "enabled")
        .atOnce("Whether /auth answers gateways; the bearer tokens it judges are tied to no login.")
    package let gatewayOrigin = Setting<GatewayOrigin?>("gateway_origin", Read.origin)
        .ifUnset("none: X-Forwarded-Proto and X-Forwarded-Host tell them")
        .atOnce("Scheme and host of the clients' requests, such as https://api.example.com, for DPoP proofs.")
        .part(of: .gateway)
    package let dpop = Setting("dpop", DPoPDemand.ifSent)
        .atOnce("Whether /auth judges DPoP proofs, and whether it refuses a token without one that is bound to a key.")
        .fromStrictest([DPoPDemand.requiredIfBound, .ifSent, .ignored].map(\.rawValue))
    package let authHeaders = Setting("auth_headers", AuthField.standard, each: AuthField.init)
        .atOnce("The fields in which /auth tells claims: a list of FIELD=CLAIM, in place of the default one.")
        .part(of: .gateway)
    /// The wanted number; ``ServiceConfiguration/signaturesPerWorker`` is the number that fits into memory.
    package let signatureCacheEntries =
        Setting("signature_cache_entries", signatureEntries, VerifiedSignatureCache.defaultCapacity)
        .restart(
            "How many good signatures each worker remembers for /auth and /introspect; 0 for none. All workers together have a sixteenth of memory_limit for them."
        )

    // Nonces, and what is used once.
    package let nonceSecretFile = Setting<String?>("nonce_secret_file", .secretFile)
        .ifUnset("none: no nonces are issued")
        .guarding("A file of one or two secrets: the first issues nonces, both recognise them.")
    package let nonceTTL = Setting("nonce_ttl_seconds", 1...greatestNonceTTL, NonceIssuer.defaultLifetime)
        .atOnce("How long an issued nonce is good.")
    package let replaysAreRejected = Setting("replay", ["accept", "reject"], isTrueIf: "reject")
        .atOnce("Whether POST /verify and /token accept a token (its claim jti) again, or only once.")
        .fromStrictest(["reject", "accept"])
    /// The server that remembers used nonces, tokens and proofs; nil if this process does.
    package let replayStore = Setting<ReplayStoreURL?>("replay_store", nil, text: "memory", Read.storeURL)
        .restart(
            "Where used nonces, tokens and proofs, and revocations, are remembered: memory, or for replicas redis:// or rediss://, also with +cluster or +sentinel, or redis+unix://."
        )
        .hiding(Read.shownStore)
    package let replayStorePasswordFile = Setting<String?>("replay_store_password_file", .secretFile)
        .restart("A file with the password of the Redis server, instead of one in its URL.")
    package let replayStoreSentinelPasswordFile = Setting<String?>("replay_store_sentinel_password_file", .secretFile)
        .restart("The sentinels have a password of their own: a file with it.")
    package let replayStoreSentinelUser = Setting<String?>("replay_store_sentinel_user", .text)
        .restart("The sentinels' user, if they have named ones; its password is in the file above.")
    package let replayStoreCertificateFile = Setting<String?>("replay_store_client_certificate_file", .file)
        .restart("The certificate chain (PEM) that a Redis server or sentinel asks of its clients.")
    package let replayStoreKeyFile = Setting<String?>("replay_store_client_key_file", .secretFile)
        .restart("The private key (PEM) of that certificate.")
    package let replayStoreCapacity =
        Setting("replay_store_capacity", .integer(1_000...10_000_000), ReplayLimits.defaultCapacity)
        .restart("How many used nonces, tokens and proofs are remembered in memory; beyond that, 503.")

    // Facebook's Graph and callbacks.
    package let appSecretsFile = Setting<String?>("app_secrets_file", .secretFile)
        .ifUnset("none: the routes for permissions and callbacks are 404")
        .reread("A file of the apps' ids and secrets, for Graph and for Facebook's callbacks.")
    package let graphURL = Setting("graph_url", GraphConfiguration.standardURL, Read.graphAddress)
        .restart("Where Facebook's Graph API is; https, or http on a loopback address.")
    package let graphVersion = Setting("graph_version", GraphConfiguration.standardVersion, Read.version)
        .restart("The version of the Graph API, such as v26.0.")
    package let uninstallURL = Setting("uninstall_url", GraphConfiguration.standardUninstallURL, Read.graphAddress)
        .restart("Where Limited Login uninstalls an app; https, or http on a loopback address.")
    package let callbacksURL = Setting<HTTPURL?>("callbacks_url", Read.url)
        .ifUnset("none: the backend is not told")
        .reread("Where your backend takes webhooks of callbacks and revocations; https, or http on a loopback address.")
    package let callbacksSecretFile = Setting<String?>("callbacks_secret_file", .secretFile)
        .ifUnset("none: callbacks_url needs it")
        .reread("A file of one or two secrets (whsec_…) that sign the webhooks.")
        .part(of: .webhook)
    package let dataDeletionStatusURL = Setting<HTTPURL?>("data_deletion_status_url", Read.statusURL)
        .ifUnset("none: callbacks_url needs it")
        .reread("The page that tells people what became of their data, where the backend names none.")
        .part(of: .webhook)

    // Issued tokens.
    package let issuer = Setting<String?>("issuer", Read.tokenIssuer)
        .ifUnset("none: no tokens are issued")
        .restart(
            "The claim iss of the tokens that POST /token issues: the https URL at which others reach the service."
        )
    package let signingKeysFile = Setting<String?>("signing_keys_file", .secretFile)
        .ifUnset("none: issuer is refused without such a file")
        .reread("The private keys (PEM) of issued tokens: the first signs, and the public half of each is published.")
        .part(of: .tokens)
    package let tokenAudiences = Setting("token_audiences", each: Read.audience)
        .ifUnset("the issuer itself")
        .atOnce("The audiences that an issued token may have; the first one if the caller names none.")
        .part(of: .tokens)
    package let tokenClaims = Setting("token_claims", each: Read.tokenClaim)
        .atOnce(
            "What issued tokens tell of the person: \(TokenIssuer.Claim.allCases.map(\.rawValue).joined(separator: ", "))."
        )
        .part(of: .tokens)
    package let tokenExtraClaims = Setting<String?>("token_extra_claims", Read.extraClaims)
        .atOnce("More claims of issued tokens: a JSON object of at most 1 KiB, such as {\"role\": \"user\"}.")
        .part(of: .tokens)
    package let tokenScope = Setting<String?>("token_scope", Read.scope)
        .atOnce("The scope that issued tokens may have, words with spaces between; all of it if the caller names none.")
        .part(of: .tokens)
    package let tokenTypeHeader = Setting("token_type_header", TokenIssuer.AccessTokenType.accessToken)
        .atOnce("The typ of issued access tokens: RFC 9068's, or JWT for consumers that refuse it.")
        .part(of: .tokens)
    package let tokenLifetime =
        Setting("token_lifetime_seconds", TokenIssuerPolicy.lifetimeRange, TokenIssuerPolicy.defaultLifetime)
        .atOnce("How long an issued token is good; never longer than the login's own token.")
        .part(of: .tokens)

    // Operation.
    package let watchesFiles = Setting("watch_files", ["enabled", "disabled"], isTrueIf: "enabled")
        .atOnce("Whether a changed configuration file, certificate, key or secret is a reload, as by SIGHUP.")
    package let drainDelay = Setting("drain_delay_seconds", 0...300, .zero)
        .restart("How long the listeners stay open after SIGTERM, while readiness already fails.")
    package let logLevel = Setting("log_level", Logger.Level.info)
        .atOnce("The least severity that is logged.")
    package let logFormat = Setting<String?>("log_format", .choice(["json", "text"]))
        .ifUnset("text on a terminal, else json")
        .restart("Whether log lines are JSON objects or text.")
    package let auditIsOn = Setting("audit_log", ["off", "on"], isTrueIf: "on")
        .restart(
            "Whether each answer of /auth, /verify and /token has a line in the log: who by hash, what, the outcome."
        )
}

/// Facebook's JWK Set: Limited Login's own address, then the one that its discovery document names.
private let defaultKeySetURLs = [JWKSetCache.facebookURL, "https://www.facebook.com/.well-known/oauth/openid/jwks/"]
private let keys = JWKSetCacheLimits()
private let week = 604_800
private let signatureEntries = SettingKind.integer(0...VerifiedSignatureCache.greatestCapacity)
private let greatestSkew = VerificationLimits.clockSkewSeconds
private let greatestNonceTTL = seconds(NonceIssuer.greatestLifetime)
