extension TokenVerifier {
    /// The same verifier, but one that also judges a token by itself: for callers that cannot know the login, such as
    /// gateways and OAuth introspection clients. Every other check stays.
    package func acceptingUnbound() -> TokenVerifier {
        TokenVerifier(
            policy: VerificationPolicy(policy, binding: .optional),
            apps: apps,
            issuers: issuers,
            nonces: nonces
        )
    }
}

extension VerificationPolicy {
    /// A policy that was judged already, with another binding.
    fileprivate init(_ policy: VerificationPolicy, binding: Binding) {
        appIDs = policy.appIDs
        issuers = policy.issuers
        clockSkewSeconds = policy.clockSkewSeconds
        maximumTokenAgeSeconds = policy.maximumTokenAgeSeconds
        self.binding = binding
        tracking = policy.tracking
    }
}
