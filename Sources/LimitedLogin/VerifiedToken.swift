/// An accepted token with values of its own.
public struct VerifiedToken: Equatable, Sendable {
    /// What the token says about itself.
    public let authenticationToken: AuthenticationToken
    /// What it says about the person.
    public let profile: Profile
    /// Every claim it holds.
    public let claims: AuthenticationTokenClaims
    /// The permissions a caller may rely on: the profile's, and the gaming ones whose claims are there.
    let satisfiedPermissions: PermissionSet

    /// Those of `permissions` that the token shows no claim of. A permission that yields no claim
    /// (`user_messenger_contact`) is never among them.
    public func missingPermissions(among permissions: [Permission]) -> [Permission] {
        permissions.filter { !satisfiedPermissions.contains($0) && !PermissionSet.unverifiable.contains($0) }
    }
}
