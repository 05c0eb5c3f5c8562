internal import ArgumentParser
internal import Glibc
internal import LLHTTP
internal import LLService
internal import LLStores
internal import LimitedLogin
internal import LimitedLoginHTTPS
internal import LimitedLoginKeys

private let all = Settings.all

/// Makes the parts of the service that a configuration asks for; every failure is a sentence that names its setting.
enum ServiceFactory {
    static func keyCache(
        _ configuration: ServiceConfiguration,
        events: @escaping JWKSetCache.EventHandler
    ) throws(StartError) -> JWKSetCache {
        var limits = JWKSetCacheLimits()
        limits.timeToLive = configuration.jwksTTL
        limits.minimumTimeToLive = configuration.jwksMinimumTTL
        limits.maximumTimeToLive = configuration.jwksMaximumTTL
        limits.maximumStaleness = configuration.jwksMaximumStaleness
        _ = try trust(configuration)
        let sources = try configuration.jwksURLs.map { url throws(StartError) in
            try part("keys cannot be fetched from \(url.withoutUserInformation): ") {
                try HTTPSJWKSetSource(url: url, authoritiesFile: configuration.caFile)
            }
        }
        return try part {
            try JWKSetCache(sources: sources, limits: limits, seedFile: configuration.jwksFile, events: events)
        }
    }

    /// Makes a part; an error becomes a sentence that begins with `place`.
    private static func part<Part>(_ place: String = "", _ make: () throws -> Part) throws(StartError) -> Part {
        do {
            return try make()
        } catch { throw StartError("\(place)\(error)") }
    }

    static func graphClient(
        _ configuration: ServiceConfiguration,
        metrics: ServiceMetrics? = nil
    ) throws(StartError) -> GraphClient {
        let (url, version, uninstall) = (configuration.graphURL, configuration.graphVersion, configuration.uninstallURL)
        let graph = try part { try GraphConfiguration(url: url, version: version, uninstallURL: uninstall) }
        return GraphClient(configuration: graph, client: try httpsClient(configuration), metrics: metrics)
    }

    /// A client with the configured authorities and the environment's proxy.
    static func httpsClient(_ configuration: ServiceConfiguration) throws(StartError) -> HTTPSClient {
        let proxy = try part { try ProxySettings.ofProcess() }
        return HTTPSClient(trust: try trust(configuration), proxy: proxy)
    }

    static func replayStore(
        _ configuration: ServiceConfiguration,
        onEvent: @escaping @Sendable (ReplayStoreEvent) -> Void
    ) throws(StartError) -> ReplayStore {
        guard let url = configuration.replayStore else {
            let (capacity, now) = (configuration.replayStoreCapacity, WallClock.unixMilliseconds())
            return .memory(MemoryReplayStore(capacity: capacity, now: now, observe: onEvent))
        }
        let trust = try trust(configuration)
        func password(_ setting: Setting<String?>) throws(StartError) -> [UInt8]? {
            try read(setting, configuration, limit: 4_096, password(parsing:place:))
        }
        let ofServer = try password(all.replayStorePasswordFile)
        let ofSentinels = try password(all.replayStoreSentinelPasswordFile)
        var identity: (certificateFile: String, keyFile: String)?
        if let certificate = configuration.replayStoreCertificateFile, let key = configuration.replayStoreKeyFile {
            try requirePEM(all.replayStoreCertificateFile, certificate)
            try requirePEM(all.replayStoreKeyFile, key)
            identity = (certificate, key)
        }
        return try part("replay_store: the store cannot be used: ") {
            var store = RedisReplayStore.Configuration(url: url)
            if url.isSecure {
                store.tls = try TLSContext(clientTrusting: trust, speaksHTTP: false, identity: identity)
            }
            if let ofServer { store.password = ofServer }
            store.sentinelPassword = ofSentinels
            store.sentinelUser = configuration.replayStoreSentinelUser.map { Array($0.utf8) }
            store.limits.revocationSkew = configuration.clockSkew
            return .redis(try RedisReplayStore(store, observe: onEvent))
        }
    }

    /// The file's one line; the line break is not a part of the password.
    private static func password(parsing text: [UInt8], place: String) throws(ConfigurationError) -> [UInt8] {
        var line = text[...]
        if line.last == 0x0A { line = line.dropLast() }
        if line.last == 0x0D { line = line.dropLast() }
        guard !line.isEmpty, !line.contains(where: { $0 == 0x0A || $0 == 0 }) else {
            throw ConfigurationError(place: place, reason: "the file must hold the password, on one line")
        }
        return Array(line)
    }

    static func tlsContext(_ configuration: ServiceConfiguration) throws(StartError) -> TLSContext? {
        guard let certificate = configuration.tlsCertificateFile, let key = configuration.tlsKeyFile else { return nil }
        try requirePEM(all.tlsCertificateFile, certificate)
        try requirePEM(all.tlsKeyFile, key)
        let authorities = configuration.tlsClientCAFile
        if let authorities { try requirePEM(all.tlsClientCAFile, authorities) }
        return try part {
            try TLSContext(serverCertificateFile: certificate, keyFile: key, clientAuthoritiesFile: authorities)
        }
    }

    static func trust(_ configuration: ServiceConfiguration) throws(StartError) -> TLSContext.Trust {
        guard let file = configuration.caFile else { return .system }
        try requirePEM(all.caFile, file)
        let trust = TLSContext.Trust.authorities(file: file)
        _ = try part("ca_file: ") { try TLSContext(clientTrusting: trust) }
        return trust
    }

    /// Requires a setting's file to be a regular one that holds PEM of the right kind, and no key with a passphrase.
    /// OpenSSL would name neither the setting nor the fault, or would wait at a pipe.
    private static func requirePEM(_ setting: Setting<String?>, _ path: String) throws(StartError) {
        let name = setting.row.name
        // A system's whole trust store has 250 KB.
        let text = try part("\(name): ") { try FileLine.text(ofFile: path, limit: 16_777_216) }
        let isKey = setting.row.kind == .secretFile
        let labels = text.split(separator: "-----BEGIN ".utf8, omittingEmptySubsequences: false).dropFirst().map {
            String(decoding: $0.prefix { $0 != UInt8(ascii: "-") }, as: UTF8.self)
        }
        guard !labels.isEmpty else {
            throw StartError(
                "\(name): \(path) is no PEM, which has a line that begins with -----BEGIN; of DER, "
                    + "'openssl \(isKey ? "pkey" : "x509") -in FILE -out FILE.pem' makes it"
            )
        }
        let wanted = isKey ? "PRIVATE KEY" : "CERTIFICATE"
        guard labels.contains(where: { $0.hasSuffix(wanted) }) else {
            let found = ["PRIVATE KEY", "PUBLIC KEY", "CERTIFICATE REQUEST", "CERTIFICATE"].filter { label in
                labels.contains { $0.hasSuffix(label) }
            }
            throw StartError(
                "\(name): \(path) holds \(found.isEmpty ? "other PEM" : found.joined(separator: ", ")) alone; name a "
                    + "file with -----BEGIN \(wanted)-----"
            )
        }
        guard !labels.contains("ENCRYPTED PRIVATE KEY"), !text.contains("Proc-Type: 4,ENCRYPTED".utf8) else {
            throw StartError(
                "\(name): the key in \(path) has a passphrase, which a start cannot ask for; "
                    + "'openssl pkey -in FILE -out NEW' takes it away"
            )
        }
    }

    private static func read<Value>(
        _ setting: Setting<String?>,
        _ configuration: ServiceConfiguration,
        limit: Int,
        _ value: (_ text: [UInt8], _ place: String) throws -> Value
    ) throws(StartError) -> Value? {
        guard let path = configuration[setting] else { return nil }
        return try part("\(setting.row.name): ") { try value(FileLine.text(ofFile: path, limit: limit), path) }
    }

    static func settings(_ configuration: ServiceConfiguration) throws(StartError) -> RuntimeSettings {
        let clients = try clients(configuration)
        let verifier = try verifier(configuration)
        let secrets = try appSecrets(configuration)
        if configuration.accessTokensAreAccepted, let app = secrets?.appWithoutSecret {
            throw StartError(
                "access_tokens: accept needs the secret of every app, and app_secrets_file has none of app \(app)"
            )
        }
        return RuntimeSettings(
            verifier: verifier,
            clients: clients,
            gateway: configuration.gateway,
            nonceLifetimeSeconds: Int(configuration.nonceTTL.components.seconds),
            rejectsReplays: configuration.replaysAreRejected,
            appSecrets: secrets,
            acceptsAccessTokens: configuration.accessTokensAreAccepted,
            webhook: try webhook(configuration),
            tokens: try tokens(configuration)
        )
    }

    static func clients(_ configuration: ServiceConfiguration) throws(StartError) -> ClientKeys? {
        try read(all.clientKeysFile, configuration, limit: ClientKeys.fileByteLimit, ClientKeys.init(parsing:place:))
    }

    /// The verifier of id tokens; the configuration has checked the range of every value already.
    static func verifier(_ configuration: ServiceConfiguration) throws(StartError) -> TokenVerifier {
        TokenVerifier(policy: try policy(configuration), nonces: try nonceIssuer(configuration))
    }

    static func policy(_ configuration: ServiceConfiguration) throws(StartError) -> VerificationPolicy {
        try part("issuers: ") {
            try VerificationPolicy(
                appIDs: configuration.appIDs,
                issuers: configuration.issuers,
                clockSkew: configuration.clockSkew,
                maximumTokenAge: configuration.maxTokenAgeSeconds.map { .seconds($0) },
                binding: configuration.bindingIsRequired ? .required : .optional,
                tracking: configuration.onlyLimitedTracking ? .limited : .any
            )
        }
    }

    static func nonceIssuer(_ configuration: ServiceConfiguration) throws(StartError) -> NonceIssuer? {
        let limit = NonceSecretsFile.byteLimit
        return try read(all.nonceSecretFile, configuration, limit: limit, NonceSecretsFile.issuer(parsing:place:))
    }

    static func appSecrets(_ configuration: ServiceConfiguration) throws(StartError) -> AppSecrets? {
        try read(all.appSecretsFile, configuration, limit: AppSecrets.fileByteLimit) {
            try AppSecrets(parsing: $0, place: $1, appIDs: configuration.appIDs)
        }
    }

    static func signingKeys(_ configuration: ServiceConfiguration) throws(StartError) -> SigningKeySet? {
        // Eight RSA keys of 4,096 bits have 27 KB.
        try read(all.signingKeysFile, configuration, limit: 65_536) { text, place in
            try part("\(place): ") { try SigningKeySet(pem: String(decoding: text, as: UTF8.self)) }
        }
    }

    static func tokens(_ configuration: ServiceConfiguration) throws(StartError) -> TokenSettings? {
        let policy = try part { try configuration.tokenPolicy() }
        guard let policy, let keys = try signingKeys(configuration) else { return nil }
        return TokenSettings(TokenIssuer(policy: policy, keys: keys))
    }

    static func webhook(_ configuration: ServiceConfiguration) throws(StartError) -> WebhookTarget? {
        guard let url = configuration.callbacksURL, let page = configuration.dataDeletionStatusURL else { return nil }
        return try read(all.callbacksSecretFile, configuration, limit: WebhookSecrets.fileByteLimit) {
            WebhookTarget(url: url, secrets: try WebhookSecrets(parsing: $0, place: $1), statusURL: page)
        }
    }
}

/// The reason why the service does not start: one sentence for standard error.
struct StartError: Error, CustomStringConvertible {
    let description: String
    let exitCode: ExitCode

    init(_ description: String, _ exitCode: ExitCode = Exit.configuration) {
        self.description = description
        self.exitCode = exitCode
    }

    /// The error of a server that cannot be started at the address of this flag.
    init(_ error: SocketError, _ flag: String) {
        let causes = [
            EADDRINUSE: "stop the program that has it, or", EAGAIN: "stop the program that has it, or",
            EADDRNOTAVAIL: "no network interface has it (yet):",
        ]
        let cause = causes[error.errorNumber]
        let advice = cause.map { "; \($0) choose another address with \(flag)" } ?? ""
        self.init("\(error)\(advice)", cause == nil ? Exit.configuration : Exit.addressUnavailable)
    }
}
