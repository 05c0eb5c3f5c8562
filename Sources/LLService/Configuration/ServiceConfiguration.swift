internal import Glibc
internal import LLBytes
internal import LLHTTP
internal import LLStores
package import LimitedLogin

/// The whole configuration of the service, checked and typed. ``ConfigurationLoader`` makes it.
///
/// It has a member for each row of ``Settings``: `configuration.workers` is the value in force. The other members are
/// made of several settings, which are checked to go together.
@dynamicMemberLookup
package struct ServiceConfiguration: Sendable {
    /// The settings that were set, by their names; every other one has its default.
    package private(set) var settings: [String: ConfigurationSetting]
    /// The configuration file that was read; nil if there was none.
    package let file: String?
    private var values: [String: any Sendable] = [:]

    package subscript<Value>(dynamicMember path: KeyPath<Settings, Setting<Value>>) -> Value {
        get { self[Settings.all[keyPath: path]] }
        set { values[Settings.all[keyPath: path].row.name] = newValue }
    }

    package subscript<Value>(setting: Setting<Value>) -> Value {
        values[setting.row.name] as? Value ?? setting.standard
    }

    package func value(_ row: SettingRow) -> ConfigurationValue? { settings[row.name]?.value ?? row.standard }
}

private let all = Settings.all

extension ServiceConfiguration {
    /// Checks the settings. After a mistake it goes on without the setting at fault, to find the others too.
    /// - Parameter only: The settings that were read; nil for all. The others have their defaults and are not checked.
    init(_ given: GivenSettings, file: String?, only: [SettingRow]?) throws(ConfigurationError) {
        (settings, self.file) = (given.settings, file)
        var mistakes = given.mistakes
        let apps = all.appIDs.row
        let needsApp = only?.contains { $0.name == apps.name } != false
        if needsApp, settings[apps.name] == nil {
            let reason = "no app id is configured; set it to your Facebook app id (or pass --app-ids)"
            mistakes.addNew(apps.environmentName, reason, apps)
        }
        for row in Settings.rows {
            guard let setting = settings[row.name] else { continue }
            do throws(SettingFault) {
                values[row.name] = try row.read(setting.value)
            } catch {
                mistakes.addNew(setting.origin.description, error.reason, row)
                settings[row.name] = nil
            }
        }
        while let (_, conflict) = conflicts(isWhole: only == nil).first(where: \.key) {
            let row = conflict.of.row
            let setting = settings.removeValue(forKey: row.name)
            mistakes.addNew(setting?.origin.description ?? row.name, conflict.reason, row, beside: conflict.with?.row)
            guard setting != nil else { break }
            values[row.name] = nil
        }
        guard mistakes.sentences.isEmpty else { throw mistakes }
    }

    /// Settings that do not go together: the one at fault, the one that it depends on, and the reason.
    private typealias Conflict = (of: any AnySetting, with: (any AnySetting)?, reason: String)
    /// Each stands behind its condition.
    private typealias Conflicts = KeyValuePairs<Bool, Conflict>

    private func isSet(_ setting: any AnySetting) -> Bool { settings[setting.row.name] != nil }

    private func lacks(_ setting: any AnySetting, _ others: any AnySetting...) -> Conflicts.Element {
        let missing = others.filter { !isSet($0) }
        let names = missing.map(\.row.name).joined(separator: " and ")
        return (isSet(setting) && !missing.isEmpty, (setting, missing.first, "set \(names) too"))
    }

    private func conflicts(isWhole: Bool) -> [Conflicts.Element] {
        let isShared = isWhole && self.listen.network?.collides(with: self.adminListen) == true
        let sharing =
            "the administrative listener has the service's own address \(self.listen); give one of them another port"
        let others: [Conflicts] = [
            conflictsOfParts, conflictsOfTokens, conflictsOfValues, [isShared: (all.adminListen, all.listen, sharing)],
        ]
        return others.joined() + lacking
    }

    /// Callers need keys where tokens are issued, because a caller gets a token that others accept as a login.
    private var lacking: [Conflicts.Element] {
        [
            lacks(all.tlsCertificateFile, all.tlsKeyFile), lacks(all.tlsKeyFile, all.tlsCertificateFile),
            lacks(all.replayStoreSentinelUser, all.replayStoreSentinelPasswordFile),
            lacks(all.replayStoreCertificateFile, all.replayStoreKeyFile),
            lacks(all.replayStoreKeyFile, all.replayStoreCertificateFile),
            lacks(all.callbacksURL, all.callbacksSecretFile, all.dataDeletionStatusURL),
            lacks(all.issuer, all.clientKeysFile, all.signingKeysFile),
        ]
    }

    private var conflictsOfParts: Conflicts {
        let fields = self.authHeaders.map { $0.name.lowercased() }
        let oddApp = self.appIDs.first { !$0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
        var hasPasswordInFlag = false
        if case .flag? = settings[all.replayStore.row.name]?.origin {
            hasPasswordInFlag = self.replayStore?.password != nil
        }
        let needsTLS = "client certificates need TLS: set tls_certificate_file and tls_key_file"
        return [
            isSet(all.listenMode) && self.listen.network != nil:
                (all.listenMode, all.listen, "permissions have no meaning for \(self.listen); set listen to unix:PATH"),
            self.tlsClientCAFile != nil && self.tlsCertificateFile == nil:
                (all.tlsClientCAFile, all.tlsCertificateFile, needsTLS),
            oddApp != nil && self.issuers.contains(where: VerificationPolicy.defaultIssuers.contains):
                (
                    all.appIDs, nil,
                    "Facebook's app ids are decimal digits alone, and '\(oddApp ?? "")' is not: copy the App ID from the App "
                        + "Dashboard, without quotation marks or spaces"
                ),
            Set(fields).count < fields.count: (all.authHeaders, nil, "two fields have the same name"),
            hasPasswordInFlag:
                (
                    all.replayStore, nil,
                    "a password in a flag stands in the process list for every user: set "
                        + "\(all.replayStore.row.environmentName), or replay_store_password_file"
                ),
        ]
    }

    private var conflictsOfTokens: Conflicts {
        let (issuer, scope) = (self.issuer ?? "", self.tokenScope ?? "")
        let foreign = SettingFault(issuer, "is an issuer of id tokens (issuers): tokens of one's own need another name")
        var fault: InvalidConfiguration?
        do throws(InvalidConfiguration) { _ = try tokenPolicy() } catch { fault = error }
        return [
            self.issuers.contains(issuer): (all.issuer, nil, foreign.reason),
            // Each value was checked by itself, so the scope stands in two settings.
            fault != nil && !scope.isEmpty: (all.tokenScope, nil, "\(fault?.description ?? "")"),
        ]
    }

    private var conflictsOfValues: Conflicts {
        let time = seconds(self.jwksTTL)
        let (least, greatest) = (seconds(self.jwksMinimumTTL), seconds(self.jwksMaximumTTL))
        let unit = all.jwksTTL.row.kind.withUnit
        let idle = HTTPServerLimits.greatestVerifiedIdleTimeout
        let (store, url) = (self.replayStore, all.replayStore)
        let (passwordFile, sentinelsFile) = (all.replayStorePasswordFile, all.replayStoreSentinelPasswordFile)
        let certificate = all.replayStoreCertificateFile
        let needsSecrets = "Graph is asked about access tokens with the app's secret: set app_secrets_file"
        var hasSentinels = false
        if case .sentinel? = store?.kind { hasSentinels = true }
        return [
            least > greatest:
                (all.jwksMinimumTTL, nil, "the least time to live (\(least) s) is above the greatest (\(greatest) s)"),
            time < least || time > greatest:
                (
                    all.jwksTTL, nil,
                    "\(unit(time)) is outside \(unit(least)) to \(unit(greatest)), which "
                        + "jwks_minimum_ttl_seconds and jwks_maximum_ttl_seconds allow"
                ),
            self.replayStorePasswordFile != nil && store == nil:
                (passwordFile, url, "the store in memory has no password; set replay_store to a redis:// URL"),
            self.replayStorePasswordFile != nil && store?.password != nil:
                (passwordFile, url, "the URL in replay_store has a password already"),
            self.replayStoreSentinelPasswordFile != nil && !hasSentinels:
                (sentinelsFile, url, "replay_store names no sentinels: set it to a redis+sentinel:// URL"),
            self.replayStoreCertificateFile != nil && store?.isSecure != true:
                (certificate, url, "a certificate is shown over TLS alone: set replay_store to a rediss:// URL"),
            self.accessTokensAreAccepted && self.appSecretsFile == nil:
                (all.accessTokensAreAccepted, all.appSecretsFile, needsSecrets),
            self.tlsClientCAFile != nil && self.idleTimeout > idle:
                (
                    all.idleTimeout, all.tlsClientCAFile,
                    "with tls_client_ca_file a connection lives five minutes at most, so it is idle for "
                        + "\(seconds(idle)) s at most"
                ),
        ]
    }

    /// The rules for issued tokens; nil if none are issued.
    package func tokenPolicy() throws(InvalidConfiguration) -> TokenIssuerPolicy? {
        guard let issuer = self.issuer else { return nil }
        return try TokenIssuerPolicy(
            issuer: issuer,
            audiences: self.tokenAudiences,
            lifetime: self.tokenLifetime,
            accessTokenType: self.tokenTypeHeader,
            claims: self.tokenClaims,
            extraClaims: self.tokenExtraClaims ?? "{}",
            scope: self.tokenScope ?? ""
        )
    }

    package var gateway: GatewaySettings? {
        self.gatewayIsEnabled
            ? GatewaySettings(dpop: self.dpop, origin: self.gatewayOrigin, fields: self.authHeaders) : nil
    }

    package var workerCount: Int { self.workers ?? ProcessLimits.processorCount() }

    /// The wanted number of remembered tokens, limited by the memory for those of all workers: a sixteenth. Connections
    /// have a half, and the program uses most of the rest.
    package var signaturesPerWorker: Int {
        let memory = ProcessLimits.memory(of: self.memoryLimitBytes) / 16
        return min(self.signatureCacheEntries, memory / max(workerCount, 1) / RecentDigests.bytesPerEntry)
    }

    /// The reason why a reload may not replace another configuration by this one; nil if it may.
    package func refusal(after old: ServiceConfiguration) -> String? {
        Settings.rows.lazy.compactMap { $0.reload.refusal($0.name, from: old.value($0), to: value($0)) }.first
    }

    /// Warnings, one sentence each, about accepted settings and permissions of files that may be a mistake. They are not
    /// errors: a refusal could lock people out if there is no mistake.
    package var warnings: [String] {
        let doubts = [verdictDoubts, callerDoubts, gatewayDoubts, storeDoubts].joined()
        var warnings = doubts.filter(\.key).map(\.value)
        if !self.gatewayIsEnabled { warnings += idleSettings(of: .gateway) }
        if self.callbacksURL == nil { warnings += idleSettings(of: .webhook) }
        if self.issuer == nil { warnings += idleSettings(of: .tokens) }
        for row in Settings.rows where row.kind == .secretFile {
            if case .text(let path) = value(row) { warnings += Self.looseness(of: path, row.name) }
        }
        if self.replayStore?.password != nil, case .file(let path, _)? = settings["replay_store"]?.origin {
            warnings += Self.looseness(of: path, "the password in replay_store")
        }
        if let path = self.jwksFile { warnings += Self.seedWarnings(path) }
        return warnings
    }

    /// Sentences, each behind the condition under which it is told.
    private typealias Doubts = KeyValuePairs<Bool, String>

    private var verdictDoubts: Doubts {
        let oddIssuer = self.issuers.first { $0.hasSuffix("/") }
        return [
            oddIssuer != nil:
                "The issuer '\(oddIssuer ?? "")' ends with a slash: issuers are compared byte by byte, and Facebook's have "
                + "none there.",
            // The pair is not refused: an app with Limited Login on iPhones and another login on Android needs both.
            self.onlyLimitedTracking && self.accessTokensAreAccepted:
                "tracking: limited is about id tokens alone: with access_tokens: accept a login with tracking is accepted by "
                + "its access token.",
            !self.bindingIsRequired:
                "binding is optional: a backend that sends neither nonce nor subject takes a token that was stolen, or "
                + "made for another login.",
        ]
    }

    private var callerDoubts: Doubts {
        let isOpen = self.clientKeysFile == nil && self.tlsClientCAFile == nil
        let address = self.listen.network
        return [
            isOpen && address?.isLoopback == false:
                "The listener \(self.listen) is open to anybody who can reach it: "
                + "neither client_keys_file nor tls_client_ca_file is set.",
            isOpen && address == nil && self.listenMode.isForEverybody:
                "The listener \(self.listen) is open to every user of this machine: listen_mode is \(self.listenMode), and "
                + "client_keys_file is not set.",
            isOpen && self.accessTokensAreAccepted:
                "access_tokens is accept and client_keys_file is not set: anybody who can reach the listener can have the "
                + "app ask Graph, which limits how often an app asks.",
            self.trustedPeers.contains(where: \.isEverything):
                "trusted_peers names every address: one client may then take all connections. Name the gateway's.",
        ]
    }

    private var gatewayDoubts: Doubts {
        let (isOn, asksForProofs) = (self.gatewayIsEnabled, self.dpop == .requiredIfBound)
        return [
            !isOn && asksForProofs: "dpop is required_if_bound and gateway is not enabled: no route asks for a proof.",
            isOn && !asksForProofs:
                "gateway is enabled and dpop is \(self.dpop.rawValue): a token that is bound to a key passes as Bearer "
                + "without a proof (RFC 9449 section 7.2). Set dpop to required_if_bound where your clients send proofs.",
            isOn && asksForProofs && self.gatewayOrigin == nil:
                "dpop is required_if_bound and gateway_origin is not set: scheme and host of a proof are compared with what "
                + "the gateway says, so it must set X-Forwarded-Proto and X-Forwarded-Host itself.",
        ]
    }

    private var storeDoubts: Doubts {
        let store = self.replayStore
        let hasPassword =
            store?.password != nil || self.replayStorePasswordFile != nil || self.replayStoreSentinelPasswordFile != nil
        let (wanted, fitting) = (self.signatureCacheEntries, signaturesPerWorker)
        return [
            hasPassword && store?.isSecure == false && store?.isLoopbackHost == false:
                "The password of replay_store goes over the network in the clear to \(store?.host ?? ""): use "
                + "\(store?.secureScheme ?? "").",
            // With many cores the default may exceed the memory, but the operator did not set it.
            fitting < wanted && wanted != VerifiedSignatureCache.defaultCapacity:
                "signature_cache_entries is \(wanted), and memory_limit leaves room for \(fitting) "
                + "in each of \(workerCount) workers: so many are remembered.",
            self.callbacksURL != nil && self.appSecretsFile == nil:
                "callbacks_url is set and app_secrets_file is not: Facebook's callbacks are 404.",
        ]
    }

    /// Warns if the folder of `jwks_file` takes no new file, as each fetch needs; a symbolic link is not checked.
    private static func seedWarnings(_ path: String) -> [String] {
        var information = stat()
        if unsafe lstat(path, &information) == 0, information.st_mode & S_IFMT == S_IFLNK { return [] }
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        guard unsafe access("\(folder)/.", W_OK | X_OK) != 0 else { return [] }
        let reason = SystemReason.sentence(for: errno).lowercased()
        return ["jwks_file: no file can be written into \(folder) (\(reason)), so no keys are kept for the next start."]
    }

    /// The settings that a reload from another configuration makes less strict, with their values before and after it.
    package func weakenings(since old: ServiceConfiguration) -> [(name: String, old: String, new: String)] {
        Settings.rows.compactMap { row in
            guard case .text(let before) = old.value(row), case .text(let after) = value(row),
                let from = row.strictness.firstIndex(of: before), let to = row.strictness.firstIndex(of: after),
                to > from
            else { return nil }
            return (row.name, before, after)
        }
    }

    /// Warnings about settings that have another value than their default, and no effect without a feature.
    private func idleSettings(of feature: SettingFeature) -> [String] {
        Settings.rows.filter { $0.feature == feature && value($0) != $0.standard }.map {
            "\($0.name) is set and \(feature.rawValue)."
        }
    }

    /// Warnings about the permissions of a file with a secret. The group may read another user's file: the service itself
    /// may need that (root's file, mode 0640; a Kubernetes Secret with `fsGroup`).
    private static func looseness(of path: String, _ secret: String) -> [String] {
        var information = stat()
        guard unsafe stat(path, &information) == 0 else { return [] }
        let mode = information.st_mode & 0o777
        let groupBits: mode_t = information.st_uid == geteuid() ? 0o060 : 0o020
        guard mode & (groupBits | 0o006) != 0 else { return [] }
        let people = mode & 0o006 != 0 ? "Anybody on this machine" : "The file's group"
        let can = mode & 0o022 != 0 ? "change" : "read"
        return ["\(people) can \(can) \(secret): \(path) (mode 0\(String(mode, radix: 8))); give it 0600."]
    }
}
