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
        keep(nonce, until: .now + Self.life)
        return nonce
    }

    /// Takes the nonce, and says until when it is good; nil if it was not made here, is too old or was taken before.
    func take(_ nonce: String) -> ContinuousClock.Instant? {
        guard let deadline = deadlines.removeValue(forKey: nonce), .now < deadline else { return nil }
        return deadline
    }

    /// Keeps a nonce that is new, or that was taken for nothing.
    func keep(_ nonce: String, until deadline: ContinuousClock.Instant) {
        deadlines[nonce] = deadline
        order.append(nonce)
        if order.count > Self.countLimit { deadlines[order.removeFirst()] = nil }
    }
}
