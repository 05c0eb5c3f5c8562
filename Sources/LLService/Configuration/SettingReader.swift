internal import LLGraph
internal import LLHTTPClient
internal import LLSockets
internal import LLStores
internal import LimitedLogin

/// Typed, bounded access to the settings and their defaults. Each error names the place of the value.
struct SettingReader {
    let settings: [ConfigurationKey: ConfigurationSetting]

    /// The configured value, or the default; nil if there is neither.
    func value(_ key: ConfigurationKey) -> ConfigurationValue? {
        if let value = settings[key]?.value { return value }
        guard case .value(let value) = key.definition.standard else { return nil }
        return value
    }

    /// Empty if the setting has neither a value nor a default.
    func list(_ key: ConfigurationKey) throws(ConfigurationError) -> [String] {
        guard let value = value(key) else { return [] }
        guard case .list(let values) = value else { throw failure(key, key.definition.kind.wording.need) }
        var seen = Set<String>()
        for value in values {
            guard !value.isEmpty else { throw failure(key, "the list has an empty element") }
            guard seen.insert(value).inserted else { throw failure(key, value, "stands in the list twice") }
        }
        return values
    }

    func optionalText(_ key: ConfigurationKey) throws(ConfigurationError) -> String? {
        guard let value = value(key) else { return nil }
        guard case .text(let text) = value else { throw failure(key, key.definition.kind.wording.need) }
        guard !text.isEmpty else { throw failure(key, "the value is empty; leave the key out instead") }
        guard !text.utf8.contains(0) else { throw failure(key, "the value holds a NUL byte") }
        if case .choice(let words) = key.definition.kind, !words.contains(text) {
            throw failure(key, text, "is none of \(words.joined(separator: ", "))")
        }
        return text
    }

    func text(_ key: ConfigurationKey) throws(ConfigurationError) -> String {
        guard let text = try optionalText(key) else { throw failure(key, "it must be set") }
        return text
    }

    /// A number, a time in seconds or a size in bytes.
    func optionalNumber(_ key: ConfigurationKey) throws(ConfigurationError) -> Int? {
        guard let value = value(key) else { return nil }
        guard case .integer(let number) = value, let range = key.definition.kind.range else {
            throw failure(key, key.definition.kind.wording.need)
        }
        guard range.contains(number) else {
            let kind = key.definition.kind
            throw failure(
                key,
                "\(number) is outside \(kind.withUnit(range.lowerBound)) to \(kind.withUnit(range.upperBound))"
            )
        }
        return number
    }

    func number(_ key: ConfigurationKey) throws(ConfigurationError) -> Int {
        guard let number = try optionalNumber(key) else { throw failure(key, "it must be set") }
        return number
    }

    /// An error that names the place of a setting's value.
    /// - Parameter other: The setting that this one depends on, if the two do not go together.
    func failure(
        _ key: ConfigurationKey,
        _ reason: String,
        beside other: ConfigurationKey? = nil
    ) -> ConfigurationError {
        let place = settings[key]?.origin.description ?? key.rawValue
        return ConfigurationError(place: place, reason: reason, key: key, other: other)
    }

    /// The same, with the value quoted except for its secret part.
    private func failure(_ key: ConfigurationKey, _ value: String, _ reason: String) -> ConfigurationError {
        failure(key, "'\(value.withoutUserInformation)' \(reason)")
    }

    /// The error of a setting that some of the others, which are not set, must accompany.
    private func lacks(_ key: ConfigurationKey, _ others: ConfigurationKey...) -> ConfigurationError {
        let missing = others.filter { value($0) == nil }
        return failure(key, "set \(missing.map(\.rawValue).joined(separator: " and ")) too", beside: missing.first)
    }

    private func url(_ key: ConfigurationKey, _ value: String) throws(ConfigurationError) -> HTTPURL {
        do throws(HTTPURL.ParsingError) {
            return try HTTPURL(parsing: value)
        } catch {
            throw failure(key, value, "cannot be used: \(error.rawValue)")
        }
    }
}

/// Apps and addresses.
extension SettingReader {
    func appIDs() throws(ConfigurationError) -> [String] {
        let values = try list(.appIDs)
        guard !values.isEmpty else {
            throw ConfigurationError(
                place: ConfigurationKey.appIDs.environmentName,
                reason: "no app id is configured; set it to your Facebook app id (or pass --app-ids)",
                key: .appIDs
            )
        }
        for value in values where value.utf8.count > 64 || !VerificationPolicy.isAppID(value) {
            throw failure(.appIDs, value, "is no app id; Facebook's are decimal numbers")
        }
        return values
    }

    func issuers() throws(ConfigurationError) -> [String] {
        let values = try list(.issuers)
        do throws(InvalidConfiguration) {
            // The verifier's own rules apply. They need an app id; any will do.
            _ = try VerificationPolicy(appIDs: ["0"], issuers: values)
        } catch {
            throw failure(.issuers, "\(error)")
        }
        return values
    }

    func urls(_ key: ConfigurationKey) throws(ConfigurationError) -> [String] {
        let values = try list(key)
        for value in values { _ = try url(key, value) }
        return values
    }

    func listenAddress() throws(ConfigurationError) -> ListenAddress {
        let value = try text(.listen)
        guard value.hasPrefix(ListenAddress.unixPrefix) else { return .network(try address(.listen)) }
        do throws(UnixSocketPath.ParsingError) {
            return .unix(try UnixSocketPath(String(value.dropFirst(ListenAddress.unixPrefix.count))))
        } catch {
            throw failure(.listen, value, "cannot be used: \(error)")
        }
    }

    func adminListenAddress() throws(ConfigurationError) -> SocketAddress {
        guard try !text(.adminListen).hasPrefix(ListenAddress.unixPrefix) else {
            throw failure(
                .adminListen,
                "the administrative listener takes an address and port alone: probes and Prometheus ask it"
            )
        }
        return try address(.adminListen)
    }

    func listenMode(of listen: ListenAddress) throws(ConfigurationError) -> UnixSocketMode {
        let value = try text(.listenMode)
        guard let mode = UnixSocketMode(value) else {
            throw failure(
                .listenMode,
                value,
                "is no permissions of a socket: octal digits are needed, from 0600 to 0777"
            )
        }
        guard listen.network == nil || settings[.listenMode] == nil else {
            throw failure(
                .listenMode,
                "permissions have no meaning for \(listen); set \(ConfigurationKey.listen.rawValue) to unix:PATH",
                beside: .listen
            )
        }
        return mode
    }

    func addressPrefixes(_ key: ConfigurationKey) throws(ConfigurationError) -> [AddressPrefix] {
        var prefixes: [AddressPrefix] = []
        for value in try list(key) {
            guard let prefix = AddressPrefix(value) else {
                throw failure(key, value, "is no address and no CIDR prefix, such as 10.0.0.0/8 or fd00::/8")
            }
            prefixes.append(prefix)
        }
        return prefixes
    }

    private func address(_ key: ConfigurationKey) throws(ConfigurationError) -> SocketAddress {
        let value = try text(key)
        guard let address = SocketAddress(value) else {
            throw failure(key, value, "is no numeric address and port, such as 127.0.0.1:8080 or [::1]:8080")
        }
        return address
    }
}

/// Settings that depend on each other.
extension SettingReader {
    /// A certificate and its key come together, and client authorities only with them.
    func tlsFiles() throws(ConfigurationError) -> TLSFiles? {
        let clientAuthorities = try optionalText(.tlsClientCAFile)
        let (certificate, key) = (try optionalText(.tlsCertificateFile), try optionalText(.tlsKeyFile))
        if let certificate, let key {
            return TLSFiles(certificate: certificate, key: key, clientAuthorities: clientAuthorities)
        }
        guard certificate == nil else { throw lacks(.tlsCertificateFile, .tlsKeyFile) }
        guard key == nil else { throw lacks(.tlsKeyFile, .tlsCertificateFile) }
        guard clientAuthorities == nil else {
            throw failure(
                .tlsClientCAFile,
                "client certificates need TLS: set \(ConfigurationKey.tlsCertificateFile.rawValue) "
                    + "and \(ConfigurationKey.tlsKeyFile.rawValue)",
                beside: .tlsCertificateFile
            )
        }
        return nil
    }

    /// Nil for the store in memory. No message repeats the value: it may hold a password.
    func replayStore() throws(ConfigurationError) -> ReplayStoreURL? {
        let value = try text(.replayStore)
        if value == "memory" { return nil }
        let url: ReplayStoreURL
        do throws(ReplayStoreURL.ParsingError) {
            url = try ReplayStoreURL(parsing: value)
        } catch {
            throw failure(.replayStore, "the value cannot be used: \(error)")
        }
        if case .flag = settings[.replayStore]?.origin, url.password != nil {
            throw failure(
                .replayStore,
                "a password in a flag stands in the process list for every user: set "
                    + "\(ConfigurationKey.replayStore.environmentName), or "
                    + "\(ConfigurationKey.replayStorePasswordFile.rawValue)"
            )
        }
        return url
    }

    /// The address of Graph. Each part is checked on its own, so that an error names the right key.
    func graph() throws(ConfigurationError) -> GraphConfiguration {
        let version = try text(.graphVersion)
        let url = try graphURL(.graphURL)
        let uninstallURL = try graphURL(.uninstallURL)
        do throws(GraphConfiguration.Fault) {
            return try GraphConfiguration(url: url, version: version, uninstallURL: uninstallURL)
        } catch {
            let example = GraphConfiguration.standardVersion
            throw failure(.graphVersion, version, "is no version of the Graph API, such as \(example)")
        }
    }

    /// The backend's address needs a secret to sign with, and a page that Facebook can show people.
    func webhook() throws(ConfigurationError) -> WebhookConfiguration? {
        guard let url = try optionalURL(.callbacksURL) else { return nil }
        guard let secretFile = try optionalText(.callbacksSecretFile),
            let statusURL = try optionalURL(.dataDeletionStatusURL)
        else { throw lacks(.callbacksURL, .callbacksSecretFile, .dataDeletionStatusURL) }
        guard !statusURL.target.utf8.contains(UInt8(ascii: "?")) else {
            throw failure(.dataDeletionStatusURL, "it must not have a query: the code becomes one")
        }
        return WebhookConfiguration(url: url, secretFile: secretFile, statusURL: statusURL)
    }

    /// The settings for issuing tokens. Callers need keys, because a caller gets a token that others accept as a login.
    /// - Parameter issuers: The issuers of id tokens. The issuer of this service must be a different one.
    func tokens(except issuers: [String]) throws(ConfigurationError) -> TokenConfiguration? {
        let names = try list(.tokenClaims)
        var claims: [TokenIssuer.Claim] = []
        for name in names {
            guard let claim = TokenIssuer.Claim(rawValue: name) else {
                let known = TokenIssuer.Claim.allCases.map(\.rawValue).joined(separator: ", ")
                throw failure(.tokenClaims, name, "is none of \(known)")
            }
            claims.append(claim)
        }
        let type = TokenIssuer.AccessTokenType(rawValue: try text(.tokenTypeHeader)) ?? .accessToken
        let lifetime = try number(.tokenLifetimeSeconds)
        guard let issuer = try optionalText(.issuer) else { return nil }
        guard !issuers.contains(issuer) else {
            throw failure(.issuer, issuer, "is an issuer of id tokens (issuers): tokens of one's own need another name")
        }
        guard try optionalText(.clientKeysFile) != nil, let file = try optionalText(.signingKeysFile) else {
            throw lacks(.issuer, .clientKeysFile, .signingKeysFile)
        }
        func policy(_ audiences: [String], _ extra: String) throws(InvalidConfiguration) -> TokenIssuerPolicy {
            try TokenIssuerPolicy(
                issuer: issuer,
                audiences: audiences,
                lifetimeSeconds: lifetime,
                accessTokenType: type,
                claims: claims,
                extraClaims: extra
            )
        }
        // Each value is checked by itself, so that the error names its key.
        let (audiences, extra) = (try list(.tokenAudiences), try optionalText(.tokenExtraClaims) ?? "{}")
        do throws(InvalidConfiguration) { _ = try policy([], "{}") } catch { throw failure(.issuer, "\(error)") }
        do throws(InvalidConfiguration) { _ = try policy(audiences, "{}") } catch {
            throw failure(.tokenAudiences, "\(error)")
        }
        do throws(InvalidConfiguration) {
            return TokenConfiguration(policy: try policy(audiences, extra), signingKeysFile: file)
        } catch {
            throw failure(.tokenExtraClaims, "\(error)")
        }
    }

    private func optionalURL(_ key: ConfigurationKey) throws(ConfigurationError) -> HTTPURL? {
        guard let value = try optionalText(key) else { return nil }
        return try url(key, value)
    }

    /// The settings of the gateway routes; nil if these are closed. They are checked in any case.
    func gateway() throws(ConfigurationError) -> GatewaySettings? {
        var origin: GatewayOrigin?
        if let text = try optionalText(.gatewayOrigin) {
            origin = GatewayOrigin(text)
            guard origin != nil else {
                throw failure(.gatewayOrigin, text, "is no scheme and host alone, such as https://api.example.com")
            }
        }
        let settings = GatewaySettings(
            dpop: DPoPDemand(rawValue: try text(.dpop)) ?? .requiredIfBound,
            origin: origin,
            fields: try authFields()
        )
        return try text(.gateway) == "enabled" ? settings : nil
    }

    private func authFields() throws(ConfigurationError) -> [AuthField] {
        var fields: [AuthField] = []
        for text in try list(.authHeaders) {
            do throws(AuthField.Fault) {
                fields.append(try AuthField(text))
            } catch {
                throw failure(.authHeaders, text, error.reason)
            }
        }
        let names = fields.map { $0.name.lowercased() }
        guard Set(names).count == names.count else { throw failure(.authHeaders, "two fields have the same name") }
        return fields
    }

    private func graphURL(_ key: ConfigurationKey) throws(ConfigurationError) -> String {
        let url = try text(key)
        do throws(GraphConfiguration.Fault) {
            _ = try GraphConfiguration.base(url)
        } catch {
            let reason =
                switch error {
                case .url(let error): error.rawValue
                case .query, .version: "it must not have a query"
                }
            throw failure(key, url, "cannot be used: \(reason)")
        }
        // Graph's own URLs have the version there, and every call would contain it twice.
        if let last = url.split(separator: "/").last, GraphConfiguration.isVersion(String(last)) {
            throw failure(key, url, "ends with a version: that is \(ConfigurationKey.graphVersion.rawValue)")
        }
        return url
    }
}
