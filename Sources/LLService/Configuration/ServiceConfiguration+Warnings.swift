internal import Glibc
internal import LLBytes
internal import LLHTTP
internal import LLStores

extension ServiceConfiguration {
    /// Warnings, one sentence each, about accepted settings that may be a mistake. They are not errors: a refusal could
    /// lock people out if there is no mistake.
    ///
    /// It checks the permissions of the files with secrets.
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

    /// Warnings about the folder of `jwks_file`, in which the file is replaced after each fetch; empty if that can be. The
    /// folder behind a symbolic link is not looked at.
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

    /// Warnings about the permissions of a file with a secret; empty if they are good.
    ///
    /// A group may read a file that another user owns: the service itself reads it that way (root's file, mode 0640; a
    /// Kubernetes Secret with `fsGroup`).
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
