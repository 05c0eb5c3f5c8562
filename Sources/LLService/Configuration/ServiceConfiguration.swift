package import LLHTTP
internal import LLStores
package import LimitedLogin

/// The whole configuration of the service, checked and typed. ``ConfigurationLoader`` makes it.
///
/// It has a member for each row of ``Settings``: `configuration.workers` is the value in force. The other members are
/// made of several settings, which are checked to go together.
@dynamicMemberLookup
package struct ServiceConfiguration: Sendable {
    /// The settings that were set, by their names; every other one has its default.
    package let settings: [String: ConfigurationSetting]
    private var values: [String: any Sendable] = [:]
    package private(set) var webhook: WebhookConfiguration?
    package private(set) var tokens: TokenIssuerPolicy?

    package subscript<Value>(dynamicMember path: KeyPath<Settings, Setting<Value>>) -> Value {
        get { self[Settings.all[keyPath: path]] }
        set { values[Settings.all[keyPath: path].row.name] = newValue }
    }

    package subscript<Value>(setting: Setting<Value>) -> Value {
        guard let value = values[setting.row.name] else { return setting.standard }
        return value as? Value ?? setting.standard
    }

    package func value(_ row: SettingRow) -> ConfigurationValue? { settings[row.name]?.value ?? row.standard }
}

package struct WebhookConfiguration: Sendable, Equatable {
    package let url: HTTPURL
    /// The page that shows people the state of a data deletion; without a query.
    package let statusURL: HTTPURL
}

private let all = Settings.all

extension ServiceConfiguration {
    /// - Parameter only: The settings that were read; nil for all. The others have their defaults and are not checked.
    package init(
        settings: [String: ConfigurationSetting],
        only: [SettingRow]? = nil
    ) throws(ConfigurationError) {
        self.settings = settings
        let needsApp = only?.contains { $0.name == all.appIDs.row.name } != false
        guard settings[all.appIDs.row.name] != nil || !needsApp else {
            throw ConfigurationError(
                place: all.appIDs.row.environmentName,
                reason: "no app id is configured; set it to your Facebook app id (or pass --app-ids)",
                name: all.appIDs.row.name
            )
        }
        for row in Settings.rows {
            guard let setting = settings[row.name] else { continue }
            // A command that reads this setting alone does not read the switch of its feature.
            if only == nil, row.isOptional, let name = row.feature?.switchName, settings[name] == nil { continue }
            do throws(SettingFault) {
                values[row.name] = try row.read(setting.value)
            } catch {
                throw ConfigurationError(place: setting.origin.description, reason: error.reason, name: row.name)
            }
        }
        try refuse(conflictsOfParts)
        webhook = try webhookConfiguration()
        tokens = try tokenConfiguration()
        try refuse(conflictsOfValues)
        let isShared = only == nil && self.listen.network?.collides(with: self.adminListen) == true
        let reason =
            "the administrative listener has the service's own address \(self.listen); give one of them another port"
        try refuse([(isShared, all.adminListen, all.listen, reason)])
    }

    /// Settings that do not go together: the one at fault, the one that it depends on, and the reason.
    private typealias Conflict = (isThere: Bool, of: any AnySetting, with: (any AnySetting)?, reason: String)

    private func refuse(_ conflicts: [Conflict]) throws(ConfigurationError) {
        guard let conflict = conflicts.first(where: \.isThere) else { return }
        throw failure(conflict.of, conflict.reason, beside: conflict.with)
    }

    /// An error that names the place of a setting's value.
    /// - Parameter other: The setting that this one depends on, if the two do not go together.
    private func failure(
        _ setting: any AnySetting,
        _ reason: String,
        beside other: (any AnySetting)? = nil
    ) -> ConfigurationError {
        let name = setting.row.name
        let place = settings[name]?.origin.description ?? name
        return ConfigurationError(place: place, reason: reason, name: name, other: other?.row.name)
    }

    private func isSet(_ setting: any AnySetting) -> Bool { settings[setting.row.name] != nil }

    private func lacks(_ setting: any AnySetting, _ others: any AnySetting...) -> Conflict {
        let missing = others.filter { !isSet($0) }
        let names = missing.map(\.row.name).joined(separator: " and ")
        return (isSet(setting) && !missing.isEmpty, setting, missing.first, "set \(names) too")
    }

    private var conflictsOfParts: [Conflict] {
        let fields = self.authHeaders.map { $0.name.lowercased() }
        let oddApp = self.appIDs.first { !$0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
        var hasPasswordInFlag = false
        if case .flag? = settings[all.replayStore.row.name]?.origin {
            hasPasswordInFlag = self.replayStore?.password != nil
        }
        return [
            (
                isSet(all.listenMode) && self.listen.network != nil, all.listenMode, all.listen,
                "permissions have no meaning for \(self.listen); set listen to unix:PATH"
            ),
            lacks(all.tlsCertificateFile, all.tlsKeyFile), lacks(all.tlsKeyFile, all.tlsCertificateFile),
            (
                self.tlsClientCAFile != nil && self.tlsCertificateFile == nil, all.tlsClientCAFile,
                all.tlsCertificateFile,
                "client certificates need TLS: set tls_certificate_file and tls_key_file"
            ),
            (
                oddApp != nil && self.issuers.contains(where: VerificationPolicy.defaultIssuers.contains), all.appIDs,
                nil,
                "Facebook's app ids are decimal digits alone, and '\(oddApp ?? "")' is not: copy the App ID from the App "
                    + "Dashboard, without quotation marks or spaces"
            ),
            (Set(fields).count < fields.count, all.authHeaders, nil, "two fields have the same name"),
            (
                hasPasswordInFlag, all.replayStore, nil,
                "a password in a flag stands in the process list for every user: set "
                    + "\(all.replayStore.row.environmentName), or replay_store_password_file"
            ),
            lacks(all.replayStoreSentinelUser, all.replayStoreSentinelPasswordFile),
            lacks(all.replayStoreCertificateFile, all.replayStoreKeyFile),
            lacks(all.replayStoreKeyFile, all.replayStoreCertificateFile),
            lacks(all.callbacksURL, all.callbacksSecretFile, all.dataDeletionStatusURL),
        ]
    }

    private var conflictsOfValues: [Conflict] {
        let (least, greatest) = (self.jwksMinimumTTLSeconds, self.jwksMaximumTTLSeconds)
        let unit = all.jwksTTLSeconds.row.kind.withUnit
        let idle = HTTPServerLimits.greatestVerifiedIdleTimeout
        var hasSentinels = false
        if case .sentinel? = self.replayStore?.kind { hasSentinels = true }
        return [
            (
                least > greatest, all.jwksMinimumTTLSeconds, nil,
                "the least time to live (\(least) s) is above the greatest (\(greatest) s)"
            ),
            (
                self.jwksTTLSeconds < least || self.jwksTTLSeconds > greatest, all.jwksTTLSeconds, nil,
                "\(unit(self.jwksTTLSeconds)) is outside \(unit(least)) to \(unit(greatest)), which "
                    + "jwks_minimum_ttl_seconds and jwks_maximum_ttl_seconds allow"
            ),
            (
                self.replayStorePasswordFile != nil && self.replayStore == nil, all.replayStorePasswordFile,
                all.replayStore,
                "the store in memory has no password; set replay_store to a redis:// URL"
            ),
            (
                self.replayStorePasswordFile != nil && self.replayStore?.password != nil, all.replayStorePasswordFile,
                all.replayStore, "the URL in replay_store has a password already"
            ),
            (
                self.replayStoreSentinelPasswordFile != nil && !hasSentinels, all.replayStoreSentinelPasswordFile,
                all.replayStore, "replay_store names no sentinels: set it to a redis+sentinel:// URL"
            ),
            (
                self.replayStoreCertificateFile != nil && self.replayStore?.isSecure != true,
                all.replayStoreCertificateFile, all.replayStore,
                "a certificate is shown over TLS alone: set replay_store to a rediss:// URL"
            ),
            (
                self.accessTokensAreAccepted && self.appSecretsFile == nil, all.accessTokensAreAccepted,
                all.appSecretsFile,
                "Graph is asked about access tokens with the app's secret: set app_secrets_file"
            ),
            (
                self.tlsClientCAFile != nil && .seconds(self.idleTimeoutSeconds) > idle, all.idleTimeoutSeconds,
                all.tlsClientCAFile,
                "with tls_client_ca_file a connection lives five minutes at most, so it is idle for "
                    + "\(idle.components.seconds) s at most"
            ),
        ]
    }

    private func webhookConfiguration() throws(ConfigurationError) -> WebhookConfiguration? {
        guard let url = self.callbacksURL, let page = self.dataDeletionStatusURL else { return nil }
        let statusURL: HTTPURL
        do throws(SettingFault) { statusURL = try Read.url(page) } catch {
            throw failure(all.dataDeletionStatusURL, error.reason)
        }
        guard !statusURL.target.utf8.contains(UInt8(ascii: "?")) else {
            throw failure(all.dataDeletionStatusURL, "it must not have a query: the code becomes one")
        }
        return WebhookConfiguration(url: url, statusURL: statusURL)
    }

    /// The settings for issuing tokens. Callers need keys, because a caller gets a token that others accept as a login.
    private func tokenConfiguration() throws(ConfigurationError) -> TokenIssuerPolicy? {
        guard let issuer = self.issuer else { return nil }
        let isForeign = self.issuers.contains(issuer)
        let fault = SettingFault(issuer, "is an issuer of id tokens (issuers): tokens of one's own need another name")
        try refuse([
            (isForeign, all.issuer, nil, fault.reason), lacks(all.issuer, all.clientKeysFile, all.signingKeysFile),
        ])
        func policy(
            _ audiences: [String]? = nil,
            _ extra: String? = nil,
            _ scope: String? = nil
        ) throws(InvalidConfiguration) -> TokenIssuerPolicy {
            try TokenIssuerPolicy(
                issuer: issuer,
                audiences: audiences ?? [],
                lifetime: .seconds(self.tokenLifetimeSeconds),
                accessTokenType: self.tokenTypeHeader,
                claims: self.tokenClaims,
                extraClaims: extra ?? "{}",
                scope: scope ?? ""
            )
        }
        // Each value is checked by itself, so that the error names its setting.
        var checked = all.issuer as any AnySetting
        do throws(InvalidConfiguration) {
            _ = try policy()
            checked = all.tokenAudiences
            _ = try policy(self.tokenAudiences)
            checked = all.tokenExtraClaims
            _ = try policy(self.tokenAudiences, self.tokenExtraClaims)
            checked = all.tokenScope
            return try policy(self.tokenAudiences, self.tokenExtraClaims, self.tokenScope)
        } catch {
            throw failure(checked, "\(error)")
        }
    }
}

extension ServiceConfiguration {
    package var gateway: GatewaySettings? {
        self.gatewayIsEnabled
            ? GatewaySettings(dpop: self.dpop, origin: self.gatewayOrigin, fields: self.authHeaders) : nil
    }

    package var workerCount: Int { self.workers ?? ProcessLimits.processorCount() }

    package var signaturesPerWorker: Int {
        VerifiedSignatureCache.capacity(
            wanted: self.signatureCacheEntries,
            workers: workerCount,
            memory: ProcessLimits.memory(of: self.memoryLimitBytes)
        )
    }

    /// The reason why a reload may not replace another configuration by this one; nil if it may.
    package func refusal(after old: ServiceConfiguration) -> String? {
        Settings.rows.lazy.compactMap { $0.reload.refusal($0.name, from: old.value($0), to: value($0)) }.first
    }
}
