/// The token itself: what it says about who issued it, to whom, for which app and when.
public struct AuthenticationToken: Equatable, Sendable {
    public var issuer: String
}
