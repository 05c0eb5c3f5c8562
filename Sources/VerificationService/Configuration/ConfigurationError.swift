/// A setting that stops the start; its description is one sentence that names the place and the key.
package struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The flag, the environment variable or the file and member at fault.
    package let place: String
    /// What is wrong with it, and what would be right.
    package let reason: String

    package init(place: String, reason: String) {
        self.place = place
        self.reason = reason
    }

    package var description: String { "\(place): \(reason)" }
}
