/// Says what is waited for when fetching the keys takes longer than a moment.
enum KeyFetchProgress {
    /// How long nothing is said.
    static let patience = Duration.milliseconds(700)

    /// Runs `fetch`; while it lasts longer, one line on standard error names the sources.
    static func during<Value: Sendable>(_ sources: [String], _ fetch: () async -> Value) async -> Value {
        let notice = Task {
            try await Task.sleep(for: patience)
            StandardError.write(
                "limited-login: fetching the issuer's keys from \(sources.joined(separator: ", then ")) ..."
            )
        }
        defer { notice.cancel() }
        return await fetch()
    }
}
