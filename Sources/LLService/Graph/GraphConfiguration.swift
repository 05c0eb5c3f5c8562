internal import LLBytes
package import LLHTTP

package struct GraphConfiguration: Sendable, Equatable {
    package static let standardURL = "https://graph.facebook.com"
    /// The newest version that this project supports.
    package static let standardVersion = "v26.0"
    /// Limited Login's own endpoint (developers.facebook.com/docs/facebook-login/limited-login/token).
    package static let standardUninstallURL = "https://www.limited.facebook.com/platform/uninstall/"

    /// The URL of Graph with the version; no slash at its end.
    private let base: String
    let uninstallURL: HTTPURL

    package init(
        url: String = standardURL,
        version: String = standardVersion,
        uninstallURL: String = standardUninstallURL
    ) throws(HTTPURL.ParsingError) {
        var base = try HTTPURL(parsing: url).description
        while base.hasSuffix("/") { base.removeLast() }
        self.base = "\(base)/\(version)"
        self.uninstallURL = try HTTPURL(parsing: uninstallURL)
    }

    package static func isVersion(_ text: String) -> Bool {
        let parts = text.dropFirst().split(separator: ".", omittingEmptySubsequences: false)
        return text.first == "v" && parts.count == 2
            && parts.allSatisfy { (1...4).contains($0.utf8.count) && $0.utf8.allSatisfy { $0 &- 0x30 < 10 } }
    }

    /// The URL of a path below the version. The types of its parts have already checked them.
    func url(_ path: String, _ query: [(name: String, value: String)]) throws(HTTPURL.ParsingError) -> HTTPURL {
        try HTTPURL(parsing: "\(base)/\(path)?\(FormParameters.encode(query))")
    }
}

/// Every limit of the Graph client, with its default and reason.
package enum GraphLimits {
    /// Duration of one call with its retries. 5 s: Graph answers within 1 s, and callers of the service wait no longer.
    package static let callTimeout: Duration = .seconds(5)
    /// Attempts of an idempotent call that fails transiently. 3: more would add to the load of a failing service.
    static let attemptCount = 3
    /// The longest pause before the second attempt. 200 ms: most transient faults are over by then. Each further
    /// attempt doubles it, and the actual pause is random between 0 and this value.
    static let firstPause: Duration = .milliseconds(200)
    /// Bytes of an answer. 64 KiB: a list of a person's permissions takes 2 KiB.
    static let bodyBytes = 64 * 1024
    /// Bytes of an answer about a person. 256 KiB: the ids of ``friendCount`` friends take 100 KiB.
    static let profileBytes = 256 * 1024
    /// Number of friends requested. 2,000: their ids fit into one answer of the service, which may be 64 KiB.
    static let friendCount = 2_000
    /// Permissions in an answer. 512: Facebook has fewer.
    static let permissionCount = 512
    /// Bytes of a `fbtrace_id` that are passed on. 64: real ones have 23.
    static let traceIDBytes = 64
    /// The longest wait in seconds that an answer can impose on callers. A day: the longest of Graph's windows.
    static let greatestRetryAfterSeconds = 86_400
}
