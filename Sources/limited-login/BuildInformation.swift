/// What this build is.
enum BuildInformation {
    /// The semantic version of the service and its API.
    static let version = "0.1.0"
}
