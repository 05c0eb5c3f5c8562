import Hummingbird
import LimitedLogin
import LimitedLoginKeys

/// The requests of a login and of its session.
struct LoginController {
    let verifier: LoginVerifier
    /// Holds each session under the id in its cookie.
    let store: any PersistDriver

    static let cookieName = "__Host-session"
    static let life = Duration.seconds(3_600)

    struct Session: Codable {
        var user: String?
        var login: String?
        var nonce: String?
    }

    struct Input: Decodable {
        let login: String?
        let idToken: String

        enum CodingKeys: String, CodingKey {
            case login
            case idToken = "id_token"
        }
    }

    @Sendable
    func begin(request: Request, context: BasicRequestContext) async throws -> EditedResponse<[String: String]> {
        let (login, nonce) = (Nonce.generate().value, Nonce.generate().value)
        let session = Session(user: try await session(of: request).user, login: login, nonce: nonce)
        return try await renew(request, as: session, answering: ["login": login, "nonce": nonce])
    }

    @Sendable
    func finish(request: Request, context: BasicRequestContext) async throws -> EditedResponse<[String: String]> {
        let input = try await request.decode(as: Input.self, context: context)
        let session = try await session(of: request)
        guard let nonce = session.nonce, input.login == session.login else {
            throw HTTPError(.unauthorized, message: "login_not_begun")
        }
        let profile = try await judge {
            // The nonce comes from the session, never from the client.
            let profile = try await verifier.verify(input.idToken, nonce: nonce).profile
            try await store.create(key: "nonce/\(nonce)", value: true, expires: Self.life)
            return profile
        }
        let person = ["user": profile.userID, "name": profile.name].compactMapValues { $0 }
        return try await renew(request, as: Session(user: profile.userID), answering: person)
    }

    @Sendable
    func refresh(request: Request, context: BasicRequestContext) async throws -> [String: String] {
        let input = try await request.decode(as: Input.self, context: context)
        // The user comes from the session, never from the client.
        let user = try await user(of: request)
        _ = try await judge { try await verifier.verify(input.idToken, subject: user) }
        return ["user": user]
    }

    @Sendable
    func me(request: Request, context: BasicRequestContext) async throws -> [String: String] {
        ["user": try await user(of: request)]
    }

    private func session(of request: Request) async throws -> Session {
        guard let id = request.cookies[Self.cookieName]?.value else { return Session() }
        return try await store.get(key: "session/\(id)", as: Session.self) ?? Session()
    }

    private func user(of request: Request) async throws -> String {
        guard let user = try await session(of: request).user else {
            throw HTTPError(.unauthorized, message: "not_logged_in")
        }
        return user
    }

    /// Begins a session with a new id: others may know the id of the old one.
    private func renew(
        _ request: Request,
        as session: Session,
        answering answer: [String: String]
    ) async throws -> EditedResponse<[String: String]> {
        if let old = request.cookies[Self.cookieName]?.value { try await store.remove(key: "session/\(old)") }
        let id = Nonce.generate().value
        try await store.set(key: "session/\(id)", value: session, expires: Self.life)
        var response = EditedResponse(response: answer)
        response.setCookie(Cookie(name: Self.cookieName, value: id, path: "/", secure: true, sameSite: .lax))
        return response
    }

    /// Turns a refusal into 401. An outage is not about the token, so it ends no session.
    private func judge<Verdict>(_ verify: () async throws -> Verdict) async throws -> Verdict {
        do {
            return try await verify()
        } catch let rejection as TokenRejection {
            throw HTTPError(.unauthorized, message: "\(rejection)")
        } catch let error as PersistError where error == .duplicate {
            throw HTTPError(.unauthorized, message: "nonce_used")
        } catch let outage as VerificationUnavailable {
            // Made-up tokens can exhaust the fetches of keys, and for a 503 a balancer would take the server out.
            if case .exhausted? = outage.underlyingError as? JWKSetCacheError { throw HTTPError(.tooManyRequests) }
            throw HTTPError(.serviceUnavailable, message: "try_again")
        }
    }
}
