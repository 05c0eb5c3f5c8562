import LimitedLogin

/// The nonces of logins under way. A server of several replicas keeps them where all of them look.
actor NonceStore {
    /// How long a person may take to log in.
    static let life = Duration.seconds(600)
    /// Greatest number of logins under way: beyond it the oldest is forgotten.
    static let countLimit = 10_000

    private var deadlines: [String: ContinuousClock.Instant] = [:]
    private var order: [String] = []

    func make() -> String {
        let nonce = Nonce.generate().value
        deadlines[nonce] = .now + Self.life
        order.append(nonce)
        if order.count > Self.countLimit { deadlines[order.removeFirst()] = nil }
        return nonce
    }

    /// Whether the nonce was made here, is still good and was not taken before; it is taken now.
    func take(_ nonce: String) -> Bool {
        guard let deadline = deadlines.removeValue(forKey: nonce) else { return false }
        return .now < deadline
    }
}
