internal import KeySets
internal import Networking
internal import ReplayStores

/// Typed, bounded access to the settings of a start; each refusal names the place of the value.
struct SettingReader {
    let settings: [ConfigurationKey: ConfigurationSetting]

    func place(_ key: ConfigurationKey) -> String {
        switch settings[key]?.origin {
        case .none, .standard: key.rawValue
        case .some(let origin): origin.description
        }
    }

    func list(_ key: ConfigurationKey) throws(ConfigurationError) -> [String]? {
        guard let setting = settings[key] else { return nil }
        guard case .list(let values) = setting.value else { throw failure(key, "a list of strings is needed") }
        var seen = Set<String>()
        for value in values {
            guard !value.isEmpty else { throw failure(key, "the list has an empty element") }
            guard seen.insert(value).inserted else { throw failure(key, "'\(value)' stands in the list twice") }
        }
        // An empty array in the file reads as "not set", so that the example file can show every key.
        return values.isEmpty ? nil : values
    }

    func text(_ key: ConfigurationKey) throws(ConfigurationError) -> String? {
        guard let setting = settings[key] else { return nil }
        guard case .text(let value) = setting.value else { throw failure(key, "a string is needed") }
        guard !value.isEmpty else { throw failure(key, "the value is empty; leave the key out instead") }
        guard !value.utf8.contains(0) else { throw failure(key, "the value holds a NUL byte") }
        return value
    }

    func integer(_ key: ConfigurationKey) throws(ConfigurationError) -> Int? {
        guard let setting = settings[key], let range = key.kind.range else { return nil }
        guard case .integer(let value) = setting.value else { throw failure(key, "a whole number is needed") }
        guard range.contains(value) else {
            throw failure(key, "\(value) is outside \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    func choice(_ key: ConfigurationKey) throws(ConfigurationError) -> String? {
        guard let value = try text(key), case .choice(let words) = key.kind else { return nil }
        guard words.contains(value) else {
            throw failure(key, "'\(value)' is none of \(words.joined(separator: ", "))")
        }
        return value
    }

    func address(_ key: ConfigurationKey) throws(ConfigurationError) -> SocketAddress? {
        guard let value = try text(key) else { return nil }
        guard let address = SocketAddress(value) else {
            throw failure(key, "'\(value)' is no numeric address and port, such as 127.0.0.1:8080 or [::1]:8080")
        }
        return address
    }

    func urls(_ key: ConfigurationKey) throws(ConfigurationError) -> [String]? {
        guard let values = try list(key) else { return nil }
        for value in values {
            do throws(HTTPURL.ParsingError) {
                _ = try HTTPURL(parsing: value)
            } catch {
                throw failure(key, "'\(value)' cannot be used: \(error.sentence)")
            }
        }
        return values
    }

    /// Nil for the store in memory. No message repeats the value: it may hold a password.
    func replayStore() throws(ConfigurationError) -> ReplayStoreURL? {
        guard let value = try text(.replayStore), value != "memory" else { return nil }
        do throws(ReplayStoreURL.ParsingError) {
            return try ReplayStoreURL(parsing: value)
        } catch {
            throw failure(.replayStore, "the value cannot be used: \(error)")
        }
    }

    func appIDs(_ values: [String]) throws(ConfigurationError) -> [String] {
        for value in values where value.utf8.count > 64 || !value.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) {
            throw failure(.appIDs, "'\(value)' is no app id; Facebook's are decimal numbers")
        }
        return values
    }

    private func failure(_ key: ConfigurationKey, _ reason: String) -> ConfigurationError {
        ConfigurationError(place: place(key), reason: reason)
    }
}
