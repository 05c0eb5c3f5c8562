/// What the caller knows about the login a token should belong to.
public struct TokenExpectation: Equatable, Sendable {
    /// What ties the token to the login.
    public var binding: TokenBinding
    /// The one app the token must be for, one of the policy's; nil for any of them.
    public var appID: String?

    /// An expectation.
    public init(binding: TokenBinding, appID: String? = nil) {
        self.binding = binding
        self.appID = appID
    }
}
