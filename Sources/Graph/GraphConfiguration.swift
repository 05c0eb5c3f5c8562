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

/// Every limit of the Graph client, with its default and reason.
package enum GraphLimits {
    /// One call, retries and all. 5 s: Graph answers within one, and callers of the service wait no longer.
    package static let callTimeout: Duration = .seconds(5)
    /// Tries of an idempotent call that fails transiently. 3: more would add to the load of a service that is down.
    static let attemptCount = 3
    /// The longest pause before the second try; doubled for each one more, and drawn at random from there down to none.
    /// 200 ms: most transient faults are over by then.
    static let firstPause: Duration = .milliseconds(200)
    /// Bytes of an answer. 64 KiB: a list of a person's permissions takes 2.
    static let bodyBytes = 64 * 1024
    /// Bytes of an answer about a person. 256 KiB: the ids of ``friendCount`` friends take 100.
    static let profileBytes = 256 * 1024
    /// Friends that are asked for. 2,000: their ids fit into one answer of the service, which may be 64 KiB.
    static let friendCount = 2_000
    /// Permissions in an answer. 512: Facebook has fewer.
    static let permissionCount = 512
    /// Bytes of a `fbtrace_id` that are passed on. 64: real ones have 23.
    static let traceIDBytes = 64
    /// Seconds to wait where Graph is asked too often and its answer does not say how long. 60: its windows slide over
    /// an hour, and a minute frees some of it.
    package static let defaultRetryAfterSeconds = 60
    /// The most seconds an answer can make callers wait. A day: the longest of Graph's windows.
    static let greatestRetryAfterSeconds = 86_400
}
