internal import LLGraph
internal import LLHTTPClient
internal import LLStores
internal import LimitedLogin

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
