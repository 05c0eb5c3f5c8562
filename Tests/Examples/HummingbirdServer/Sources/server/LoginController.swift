import Hummingbird
import LimitedLogin

/// The requests of a login and of its session.
struct LoginController {
    let verifier: LoginVerifier
    let sessions: Sessions

    struct Input: Decodable {
        let login: String?
        let idToken: String

        enum CodingKeys: String, CodingKey {
            case login
            case idToken = "id_token"
        }
    }

    @Sendable
    func begin(request: Request, context: BasicRequestContext) async throws -> Sessions.Answer {
        var session = try await sessions.session(of: request)
        let (login, nonce) = (Nonce.generate().value, Nonce.generate().value)
        (session.login, session.nonce) = (login, nonce)
        return try await sessions.keep(session, answering: ["login": login, "nonce": nonce])
    }

    @Sendable
    func logIn(request: Request, context: BasicRequestContext) async throws -> Sessions.Answer {
        let input = try await request.decode(as: Input.self, context: context)
        let session = try await sessions.session(of: request)
        guard let nonce = session.nonce, input.login == session.login else {
            throw HTTPError(.unauthorized, message: "login_not_begun")
        }
        let profile = try await judge {
            // The nonce comes from the session, never from the client. It is used up last.
            let profile = try await verifier.verify(input.idToken, nonce: nonce).profile
            try await sessions.use(nonce)
            return profile
        }
        // Begin a session with a new id: others may know the id of the old one.
        try await sessions.remove(session)
        let person = ["user": profile.userID, "name": profile.name].compactMapValues { $0 }
        return try await sessions.prolong(Session(user: profile.userID), answering: person)
    }

    @Sendable
    func refresh(request: Request, context: BasicRequestContext) async throws -> Sessions.Answer {
        let input = try await request.decode(as: Input.self, context: context)
        // The user comes from the session, never from the client.
        let user = try await sessions.session(of: request).loggedInUser()
        _ = try await judge { try await verifier.verifyRefresh(input.idToken, ofSessionOf: user) }
        // The client may have logged out in the meantime.
        let session = try await sessions.session(of: request)
        return try await sessions.prolong(session, answering: ["user": try session.loggedInUser()])
    }

    @Sendable
    func logOut(request: Request, context: BasicRequestContext) async throws -> Sessions.Answer {
        try await sessions.remove(try await sessions.session(of: request))
        return sessions.withoutCookie()
    }

    @Sendable
    func me(request: Request, context: BasicRequestContext) async throws -> [String: String] {
        ["user": try await sessions.session(of: request).loggedInUser()]
    }

    /// Turns a refusal into 401. An outage is not about the token, so it ends no session.
    private func judge<Verdict>(_ verify: () async throws -> Verdict) async throws -> Verdict {
        do {
            return try await verify()
        } catch let rejection as Rejection {
            throw HTTPError(.unauthorized, message: "\(rejection)")
        } catch let error as PersistError where error == .duplicate {
            throw HTTPError(.unauthorized, message: "nonce_used")
        } catch let outage as Unavailable {
            throw HTTPError(
                .init(code: outage.status),
                headers: [.retryAfter: "\(outage.retryAfterSeconds)"],
                message: "try_again"
            )
        }
    }
}
