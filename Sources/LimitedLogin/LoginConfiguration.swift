internal import LLBytes

/// The kind of a login: `LoginTracking` of Facebook's SDK for iOS. Its raw values are the words of requests and answers.
@nonexhaustive  // SE-0487
public enum LoginTracking: String, CaseIterable, Sendable {
    /// Limited Login: an id token, and the permissions of ``Permission``.
    case limited
    /// A login with tracking: also an access token, and any permission of Facebook.
    case enabled
}

/// The configuration of a login, checked before the person sees a dialog for it.
///
/// Facebook's SDKs give no reason for a bad configuration: on iOS `LoginConfiguration` is nil, and Android throws. A
/// permission outside Limited Login's scope is refused only in the dialog.
public struct LoginConfiguration: Equatable, Sendable {
    /// The names of the permissions in the given order, each once.
    public let permissions: [String]
    /// The kind of the login.
    public let tracking: LoginTracking
    /// The nonce that the app gives Facebook.
    public let nonce: Nonce

    /// Checks a configuration. Its permissions are those of ``Permission`` with ``LoginTracking/limited``; otherwise names of
    /// 1 to 64 characters of `[a-z_.]`.
    public init(permissions: [String], tracking: LoginTracking, nonce: String) throws(LoginConfigurationError) {
        guard let nonce = Nonce(nonce) else { throw .invalidNonce }
        for name in permissions {
            guard PermissionName.isValid(name) else { throw .malformedPermission }
            guard tracking == .enabled || Permission(rawValue: name) != nil else {
                throw .permissionOutsideLimitedLogin(name)
            }
        }
        var seen: Set<String> = []
        self.permissions = permissions.filter { seen.insert($0).inserted }
        self.tracking = tracking
        self.nonce = nonce
    }
}

/// The reason why a configuration is refused.
public struct LoginConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// One sentence that a person can act on.
    public let description: String

    /// The nonce is empty or has white space.
    public static let invalidNonce = Self(description: "The nonce is empty or holds white space.")
    /// A permission's name cannot be one of Facebook's.
    public static let malformedPermission = Self(description: "A permission's name is 1 to 64 of [a-z_.].")

    static func permissionOutsideLimitedLogin(_ name: String) -> Self {
        Self(description: "Limited Login cannot ask for \(name); leave it out, or log in with tracking enabled.")
    }
}
