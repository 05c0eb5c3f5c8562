internal import Graph
internal import KeySets
internal import Networking

extension SettingReader {
    /// Where Graph is, each part judged so that its own key is named.
    func graph() throws(ConfigurationError) -> GraphConfiguration {
        let url = try text(.graphURL) ?? GraphConfiguration.standardURL
        let version = try text(.graphVersion) ?? GraphConfiguration.standardVersion
        let uninstallURL = try text(.uninstallURL) ?? GraphConfiguration.standardUninstallURL
        try require(.graphURL, url)
        try require(.uninstallURL, uninstallURL)
        do throws(GraphConfiguration.Fault) {
            return try GraphConfiguration(url: url, version: version, uninstallURL: uninstallURL)
        } catch {
            throw ConfigurationError(
                place: place(.graphVersion),
                reason: "'\(version)' is no version of the Graph API, such as \(GraphConfiguration.standardVersion)"
            )
        }
    }

    private func require(_ key: ConfigurationKey, _ url: String) throws(ConfigurationError) {
        do throws(GraphConfiguration.Fault) {
            _ = try GraphConfiguration.base(url)
        } catch {
            let reason =
                switch error {
                case .url(let error): "\(error.sentence)"
                case .query, .version: "it must not have a query"
                }
            throw ConfigurationError(place: place(key), reason: "'\(url)' cannot be used: \(reason)")
        }
    }
}
