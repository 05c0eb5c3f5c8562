package import HTTPClient

/// Where Graph is.
package struct GraphConfiguration: Sendable, Equatable {
    /// Facebook's own.
    package static let standardURL = "https://graph.facebook.com"
    /// The newest version this project was written for.
    package static let standardVersion = "v26.0"
    /// Limited Login's own endpoint (developers.facebook.com/docs/facebook-login/limited-login/token).
    package static let standardUninstallURL = "https://www.limited.facebook.com/platform/uninstall/"

    /// Why a value cannot be used.
    package enum Fault: Error, Equatable, Sendable {
        case url(HTTPURL.ParsingError)
        case query
        case version
    }

    private let base: String
    package let version: String
    let uninstallURL: HTTPURL

    /// - Parameters:
    ///   - url: `https`, or `http` of a loopback host; without a query.
    ///   - version: `v` and two numbers with a full stop between.
    ///   - uninstallURL: as `url`.
    package init(
        url: String = standardURL,
        version: String = standardVersion,
        uninstallURL: String = standardUninstallURL
    ) throws(Fault) {
        base = try Self.base(url)
        guard Self.isVersion(version) else { throw .version }
        self.version = version
        self.uninstallURL = try Self.parse(uninstallURL)
        guard !uninstallURL.contains("?") else { throw .query }
    }

    /// The base of a Graph URL, without a slash at its end.
    package static func base(_ url: String) throws(Fault) -> String {
        let parsed = try parse(url)
        guard !url.contains("?") else { throw .query }
        var text = parsed.description
        while text.hasSuffix("/") { text.removeLast() }
        return text
    }

    /// Whether a text is such as `v26.0`.
    package static func isVersion(_ text: String) -> Bool {
        let parts = text.dropFirst().split(separator: ".", omittingEmptySubsequences: false)
        return text.first == "v" && parts.count == 2
            && parts.allSatisfy { part in
                (1...4).contains(part.utf8.count) && part.utf8.allSatisfy { $0 &- 0x30 < 10 }
            }
    }

    /// The URL of a place below the version, whose parts were checked by their types.
    func url(_ path: String, _ query: [(name: String, value: String)]) throws(Fault) -> HTTPURL {
        try Self.parse("\(base)/\(version)/\(path)?\(FormEncoding.encode(query))")
    }

    private static func parse(_ text: String) throws(Fault) -> HTTPURL {
        do throws(HTTPURL.ParsingError) {
            return try HTTPURL(parsing: text)
        } catch {
            throw .url(error)
        }
    }
}
