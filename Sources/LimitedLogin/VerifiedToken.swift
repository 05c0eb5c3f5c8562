/// An accepted token with values of its own.
public struct VerifiedToken: Equatable, Sendable {
    public let authenticationToken: AuthenticationToken
    public let profile: Profile
}
