internal import LLHTTPClient
internal import LLSockets
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
    func failure(_ key: ConfigurationKey, _ value: String, _ reason: String) -> ConfigurationError {
        failure(key, "'\(value.withoutUserInformation)' \(reason)")
    }

    /// The error of a setting that some of the others, which are not set, must accompany.
    func lacks(_ key: ConfigurationKey, _ others: ConfigurationKey...) -> ConfigurationError {
        let missing = others.filter { value($0) == nil }
        return failure(key, "set \(missing.map(\.rawValue).joined(separator: " and ")) too", beside: missing.first)
    }

    func url(_ key: ConfigurationKey, _ value: String) throws(ConfigurationError) -> HTTPURL {
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
