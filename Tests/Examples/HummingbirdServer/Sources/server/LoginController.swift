import Foundation
import Hummingbird
import LimitedLogin
import LimitedLoginKeys

/// The requests of a login and of the session that comes of it.
struct LoginController {
    let verifier: LoginVerifier
    let sessions: Sessions

    struct Begun: ResponseEncodable {
        let login: String
        let nonce: String
    }

    struct Login: Decodable {
        let login: String
        let idToken: String

        enum CodingKeys: String, CodingKey {
            case login
            case idToken = "id_token"
        }
    }

    struct Refresh: Decodable {
        let idToken: String

        enum CodingKeys: String, CodingKey {
            case idToken = "id_token"
        }
    }

    struct Person: ResponseEncodable {
        let user: String
        let name: String?
    }

    @Sendable
    func begin(request: Request, context: BasicRequestContext) async throws -> EditedResponse<Begun> {
        let login = Sessions.Login(id: Nonce.generate().value, nonce: Nonce.generate().value)
        let old = sessionID(of: request)
        let id = try await sessions.renew(old, as: .init(user: await sessions[old].user, login: login))
        return answer(Begun(login: login.id, nonce: login.nonce), inSession: id)
    }

    @Sendable
    func finish(request: Request, context: BasicRequestContext) async throws -> EditedResponse<Person> {
        let sent = try await request.decode(as: Login.self, context: context)
        let old = sessionID(of: request)
        guard let begun = await sessions.takeLogin(sent.login, from: old) else {
            throw HTTPError(.unauthorized, message: "This login was not begun here, or was finished already.")
        }
        do {
            let profile = try await verifier.verify(sent.idToken, nonce: begun.nonce).profile
            let id = try await sessions.renew(old, as: .init(user: profile.userID))
            return answer(Person(user: profile.userID, name: profile.name), inSession: id)
        } catch let error as VerificationUnavailable {
            // Nobody can tell whether the token is good: the app tries again with the same token, so its login is kept.
            await sessions.putBack(begun, into: old)
            throw httpError(error)
        } catch let rejection as TokenRejection {
            throw httpError(rejection)
        }
    }

    @Sendable
    func refresh(request: Request, context: BasicRequestContext) async throws -> Person {
        let sent = try await request.decode(as: Refresh.self, context: context)
        // The person is the session's, whatever the client says.
        let user = try await user(of: request)
        do {
            return Person(user: user, name: try await verifier.verify(sent.idToken, subject: user).profile.name)
        } catch {
            throw httpError(error)
        }
    }

    @Sendable
    func me(request: Request, context: BasicRequestContext) async throws -> Person {
        Person(user: try await user(of: request), name: nil)
    }

    private func user(of request: Request) async throws -> String {
        guard let user = await sessions[sessionID(of: request)].user else {
            throw HTTPError(.unauthorized, message: "Nobody is logged in.")
        }
        return user
    }

    private func sessionID(of request: Request) -> String? { request.cookies[Sessions.cookieName]?.value }

    private func answer<Body>(_ body: Body, inSession id: String) -> EditedResponse<Body> {
        let cookie = "\(Sessions.cookieName)=\(id); Path=/; HttpOnly; Secure; SameSite=Lax"
        return EditedResponse(headers: [.setCookie: cookie, .cacheControl: "no-store"], response: body)
    }

    /// A refusal is the token's fault. An outage is nobody's, and ends no session.
    private func httpError(_ error: any Error) -> any Error {
        switch error {
        case let rejection as TokenRejection: HTTPError(.unauthorized, message: "\(rejection)")
        case let fault as VerificationUnavailable:
            // Made-up tokens alone can cause this: with 503 a balancer would take the server out.
            if case .exhausted? = fault.underlyingError as? JWKSetCacheError {
                HTTPError(.tooManyRequests, message: "Try again shortly.")
            } else {
                HTTPError(.serviceUnavailable, message: "Try again shortly.")
            }
        default: error
        }
    }
}
