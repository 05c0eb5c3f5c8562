internal import Glibc
internal import LoginStores
internal import Sockets

extension ServiceConfiguration {
    /// What is accepted but may be a mistake, a sentence each: refusing it would lock people out where it is none.
    ///
    /// Looks at the permissions of the secrets' files.
    package var doubts: [String] {
        var doubts: [String] = []
        if let odd = appIDs.first(where: { !Self.isDecimal($0) }) {
            doubts.append(
                "The app id '\(odd)' is no decimal number, as Facebook's are: no token of Facebook's is for it."
            )
        }
        if let address = listen.network, !address.isLoopback, clientKeysFile == nil, tls?.clientAuthorities == nil {
            doubts.append(
                "The listener \(address) is open to anybody who can reach it: "
                    + "neither client_keys_file nor tls_client_ca_file is set."
            )
        }
        if let replayStore, !replayStore.isSecure, !replayStore.isLoopbackHost,
            replayStore.password != nil || replayStorePasswordFile != nil
        {
            doubts.append(
                "The password of replay_store goes over the network in the clear to \(replayStore.host): use rediss://."
            )
        }
        if webhook != nil, appSecretsFile == nil {
            doubts.append("callbacks_url is set and app_secrets_file is not: Facebook's callbacks are 404.")
        }
        for key in [ConfigurationKey.callbacksSecretFile, .dataDeletionStatusURL]
        where webhook == nil && values[key] != nil {
            doubts.append("\(key.rawValue) is set and callbacks_url is not: the backend is told of no callback.")
        }
        for key in ConfigurationKey.allCases where key.definition.kind == .secretFile {
            guard case .text(let path) = values[key] else { continue }
            doubts += Self.looseness(of: path, key.rawValue)
        }
        if let fileWithPassword { doubts += Self.looseness(of: fileWithPassword, "the password in replay_store") }
        return doubts
    }

    /// What is wrong with the permissions of a secret's file; nothing where they are good.
    ///
    /// A group may read a file of another user's: that is how the service itself reads it (root's file, mode 0640; a
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

    private static func isDecimal(_ text: String) -> Bool {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
