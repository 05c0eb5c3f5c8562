internal import Glibc
internal import LLBytes
internal import LLSockets
internal import LLStores

extension ServiceConfiguration {
    /// Warnings, one sentence each, about accepted settings that may be a mistake. They are not errors: a refusal could
    /// lock people out if there is no mistake.
    ///
    /// It checks the permissions of the files with secrets.
    package var warnings: [String] {
        var warnings: [String] = []
        if let odd = appIDs.first(where: { !$0.utf8.allSatisfy { (0x30...0x39).contains($0) } }) {
            warnings.append(
                "The app id '\(odd)' is no decimal number, as Facebook's are: no token of Facebook's is for it."
            )
        }
        if let odd = issuers.first(where: { $0.hasSuffix("/") }) {
            warnings.append(
                "The issuer '\(odd)' ends with a slash: issuers are compared byte by byte, and Facebook's have none there."
            )
        }
        // The pair is not refused: an app with Limited Login on iPhones and another login on Android needs both.
        if onlyLimitedTracking, accessTokensAreAccepted {
            warnings.append(
                "tracking: limited is about id tokens alone: with access_tokens: accept a login with tracking is accepted by its "
                    + "access token."
            )
        }
        if !bindingIsRequired {
            warnings.append(
                "binding is optional: a backend that sends neither nonce nor subject takes a token that was stolen, or "
                    + "made for another login."
            )
        }
        warnings += callerWarnings + gatewayWarnings
        if let replayStore, !replayStore.isSecure, !replayStore.isLoopbackHost,
            replayStore.password != nil || replayStorePasswordFile != nil || replayStoreSentinelPasswordFile != nil
        {
            warnings.append(
                "The password of replay_store goes over the network in the clear to \(replayStore.host): use \(replayStore.secureScheme)."
            )
        }
        let fitting = signaturesPerWorker
        // With many cores the default may exceed the memory, but the operator did not set it.
        if fitting < signatureCacheEntries, signatureCacheEntries != VerifiedSignatureCache.defaultCapacity {
            warnings.append(
                "signature_cache_entries is \(signatureCacheEntries), and memory_limit leaves room for \(fitting) "
                    + "in each of \(workerCount) workers: so many are remembered."
            )
        }
        if webhook != nil, appSecretsFile == nil {
            warnings.append("callbacks_url is set and app_secrets_file is not: Facebook's callbacks are 404.")
        }
        for key in [ConfigurationKey.callbacksSecretFile, .dataDeletionStatusURL]
        where webhook == nil && values[key] != nil {
            warnings.append("\(key.rawValue) is set and callbacks_url is not: the backend is told of no callback.")
        }
        for key in [
            ConfigurationKey.signingKeysFile, .tokenAudiences, .tokenClaims, .tokenExtraClaims, .tokenTypeHeader,
            .tokenLifetimeSeconds,
        ] where tokens == nil && hasOwnValue(key) {
            warnings.append("\(key.rawValue) is set and issuer is not: no tokens are issued.")
        }
        for key in ConfigurationKey.allCases where key.definition.kind == .secretFile {
            guard case .text(let path) = values[key] else { continue }
            warnings += Self.looseness(of: path, key.rawValue)
        }
        if let fileWithPassword { warnings += Self.looseness(of: fileWithPassword, "the password in replay_store") }
        if let jwksFile { warnings += Self.seedWarnings(jwksFile) }
        return warnings
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
    package func weakenings(since old: ServiceConfiguration) -> [(key: ConfigurationKey, old: String, new: String)] {
        Self.strictness.compactMap { key, words in
            guard case .text(let before) = old.values[key], case .text(let after) = values[key],
                let from = words.firstIndex(of: before), let to = words.firstIndex(of: after), to > from
            else { return nil }
            return (key, before, after)
        }
    }

    /// The values of the settings that a verdict rests on, from the strictest.
    private static let strictness: [(key: ConfigurationKey, words: [String])] = [
        (.binding, ["required", "optional"]), (.tracking, ["limited", "any"]), (.replay, ["reject", "accept"]),
        (.dpop, [DPoPDemand.requiredIfBound, .ifSent, .ignored].map(\.rawValue)),
    ]

    /// Warnings about access to the service, and the rate of calls.
    private var callerWarnings: [String] {
        var warnings: [String] = []
        let isOpen = clientKeysFile == nil && tls?.clientAuthorities == nil
        if isOpen, let address = listen.network, !address.isLoopback {
            warnings.append(
                "The listener \(address) is open to anybody who can reach it: "
                    + "neither client_keys_file nor tls_client_ca_file is set."
            )
        }
        if isOpen, listen.network == nil, listenMode.isForEverybody {
            warnings.append(
                "The listener \(listen) is open to every user of this machine: listen_mode is \(listenMode), and "
                    + "client_keys_file is not set."
            )
        }
        if isOpen, accessTokensAreAccepted {
            warnings.append(
                "access_tokens is accept and client_keys_file is not set: anybody who can reach the listener can have the "
                    + "app ask Graph, which limits how often an app asks."
            )
        }
        if trustedPeers.contains(where: \.isEverything) {
            warnings.append(
                "trusted_peers names every address: one client may then take all connections. Name the gateway's."
            )
        }
        return warnings
    }

    /// Warnings about tokens bound to a key that pass a gateway (RFC 9449 section 7.2).
    private var gatewayWarnings: [String] {
        guard let gateway else {
            var warnings = [ConfigurationKey.gatewayOrigin, .authHeaders].filter(hasOwnValue).map {
                "\($0.rawValue) is set and gateway is not enabled: no route uses it."
            }
            if case .text(DPoPDemand.requiredIfBound.rawValue) = values[.dpop] {
                warnings.append("dpop is required_if_bound and gateway is not enabled: no route asks for a proof.")
            }
            return warnings
        }
        if gateway.dpop != .requiredIfBound {
            return [
                "gateway is enabled and dpop is \(gateway.dpop.rawValue): a token that is bound to a key passes as Bearer "
                    + "without a proof (RFC 9449 section 7.2). Set dpop to required_if_bound where your clients send proofs."
            ]
        }
        if gateway.origin == nil {
            return [
                "dpop is required_if_bound and gateway_origin is not set: scheme and host of a proof are compared with what "
                    + "the gateway says, so it must set X-Forwarded-Proto and X-Forwarded-Host itself."
            ]
        }
        return []
    }

    /// True if a setting has another value than its default.
    private func hasOwnValue(_ key: ConfigurationKey) -> Bool {
        guard case .value(let standard) = key.definition.standard else { return values[key] != nil }
        return values[key] != standard
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
