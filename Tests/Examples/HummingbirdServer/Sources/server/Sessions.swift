import Hummingbird
import LimitedLogin

/// The sessions of this server, in its memory. A server of several replicas keeps them where all of them look.
actor Sessions {
    struct Session: Sendable {
        /// The person who is logged in.
        var user: String?
        /// The login under way.
        var login: Login?
    }

    struct Login: Sendable {
        /// The app's name for the login.
        let id: String
        /// The nonce that its token must bear. It stays here, so no client can name another.
        let nonce: String
    }

    static let cookieName = "__Host-session"
    static let life = Duration.seconds(3_600)
    /// Greatest number of sessions made in one life. Beyond it no login begins, and no session ends early.
    static let countLimit = 100_000

    private var sessions: [String: Session] = [:]
    private var deadlines: [(id: String, at: ContinuousClock.Instant)] = []

    subscript(id: String?) -> Session {
        forgetExpired()
        return id.flatMap { sessions[$0] } ?? Session()
    }

    /// Puts a session with a new id in place of the one before: nobody knew this id earlier.
    func renew(_ old: String?, as session: Session) throws -> String {
        forgetExpired()
        guard deadlines.count < Self.countLimit else {
            throw HTTPError(.serviceUnavailable, message: "Try again later.")
        }
        if let old { sessions[old] = nil }
        let id = Nonce.generate().value
        sessions[id] = session
        deadlines.append((id, .now + Self.life))
        return id
    }

    /// Takes the login out of its session, so that of two requests at once one has it.
    func takeLogin(_ login: String, from id: String?) -> Login? {
        guard let id, let begun = self[id].login, begun.id == login else { return nil }
        sessions[id]?.login = nil
        return begun
    }

    func putBack(_ login: Login, into id: String?) {
        if let id { sessions[id]?.login = login }
    }

    private func forgetExpired() {
        let expired = deadlines.prefix { $0.at <= .now }
        for session in expired { sessions[session.id] = nil }
        deadlines.removeFirst(expired.count)
    }
}
