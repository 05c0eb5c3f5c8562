import Foundation
import Hummingbird
import LimitedLogin

/// The login under way and the user of one client.
struct Session: Codable {
    /// The value of the client's cookie.
    var id = Nonce.generate().value
    var user: String?
    /// The user is logged in until then.
    var until = Date.distantPast
    var login: String?
    var nonce: String?

    func loggedInUser() throws -> String {
        guard let user, until > Date() else { throw HTTPError(.unauthorized, message: "not_logged_in") }
        return user
    }
}

/// The sessions of all clients.
struct Sessions {
    typealias Answer = EditedResponse<[String: String]>

    let store: any PersistDriver
    /// A session ends so many seconds after its login or its last refresh.
    let lifetime: Int

    private static let cookieName = "__Host-session"

    /// The session that the request's cookie names; a new one if there is none.
    func session(of request: Request) async throws -> Session {
        guard let id = request.cookies[Self.cookieName]?.value else { return Session() }
        return try await store.get(key: "session/\(id)", as: Session.self) ?? Session()
    }

    /// Stores a session, and gives its id to the client.
    func keep(_ session: Session, answering answer: [String: String]) async throws -> Answer {
        try await store.set(key: "session/\(session.id)", value: session, expires: .seconds(lifetime))
        return response(answer, cookie: session.id, seconds: lifetime)
    }

    /// Stores a session whose user is logged in from now on for the lifetime.
    func prolong(_ session: Session, answering answer: [String: String]) async throws -> Answer {
        var session = session
        session.until = Date(timeIntervalSinceNow: Double(lifetime))
        return try await keep(session, answering: answer)
    }

    /// Forgets a session.
    func remove(_ session: Session) async throws {
        try await store.remove(key: "session/\(session.id)")
    }

    /// The answer that removes the client's cookie.
    func withoutCookie() -> Answer {
        response([:], cookie: "", seconds: 0)
    }

    /// Uses up a nonce.
    /// - Throws: `PersistError.duplicate` if it was used before.
    func use(_ nonce: String) async throws {
        try await store.create(key: "nonce/\(nonce)", value: true, expires: .seconds(lifetime))
    }

    private func response(_ answer: [String: String], cookie id: String, seconds: Int) -> Answer {
        var response = EditedResponse(response: answer)
        response.setCookie(
            Cookie(name: Self.cookieName, value: id, maxAge: seconds, path: "/", secure: true, sameSite: .lax)
        )
        return response
    }
}
