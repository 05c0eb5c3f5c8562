import Foundation

#if canImport(FBSDKLoginKit)
import FBSDKLoginKit
#endif

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The app's side of a login that a server verifies. The app gets a nonce from the server, makes a Limited Login with
/// it, and sends the token back with the login's id. The nonce does not go back: the server keeps it in its session,
/// and `URLSession` sends the session's cookie.
@MainActor
final class ServerLogin {
    enum Failure: Error {
        case cancelled
        /// The login succeeded, but the SDK has no id token; try again.
        case noToken
        case refused(status: Int)
    }

    private let server: URL
    private let manager = LoginManager()

    init(server: URL) { self.server = server }

    struct Begun: Decodable {
        let login: String
        let nonce: String
    }

    private struct Refresh: Encodable {
        let idToken: String

        enum CodingKeys: String, CodingKey {
            case idToken = "id_token"
        }
    }

    private struct Login: Encodable {
        /// The login's id.
        let login: String
        let idToken: String
        /// The permissions that the person declined. Only the app learns of them: the token just lacks them.
        let declined: [String]

        enum CodingKeys: String, CodingKey {
            case idToken = "id_token"
            case login, declined
        }
    }

    /// Continues the server's session without a dialog: the SDK keeps the last token and refreshes it. Call it before
    /// ``logIn(asksAgain:)``.
    /// - Returns: nil if the person has to log in: there is no token that is still good, or the server has no session of
    ///   this person. A token alone never begins a session.
    func resume() async throws -> Data? {
        guard let token = AuthenticationToken.current, let end = token.claims()?.exp,
            end > Date().timeIntervalSince1970
        else { return nil }
        do {
            return try await post("refresh", Refresh(idToken: token.tokenString))
        } catch Failure.refused(401) {
            return nil
        }
    }

    /// Begins a login at the server, which gives its id and the nonce for Facebook.
    func begin() async throws -> Begun {
        try JSONDecoder().decode(Begun.self, from: try await post("login/begin", [String: String]()))
    }

    /// Sends the token of a successful login, and the declined permissions.
    func finish(_ begun: Begun, declined: [String]) async throws -> Data {
        // Send the id token, not AccessToken.current: in Limited Login that is nil or useless.
        guard let token = AuthenticationToken.current?.tokenString else { throw Failure.noToken }
        return try await post("login", Login(login: begun.login, idToken: token, declined: declined))
    }

    /// - Parameter asksAgain: true if the person has returned to a permission that they declined. By default the SDK
    ///   asks for it again with every login.
    func logIn(asksAgain: Bool = false) async throws -> Data {
        let begun = try await begin()
        // Tracking is .limited with any answer to App Tracking Transparency.
        guard
            let configuration = LoginConfiguration(
                permissions: ["public_profile", "email"],
                tracking: .limited,
                nonce: begun.nonce,
                authType: asksAgain ? .rerequest : nil
            )
        else { throw Failure.noToken }
        return try await finish(begun, declined: try await facebookLogin(configuration))
    }

    /// Logs in, and returns the declined permissions.
    private func facebookLogin(_ configuration: LoginConfiguration) async throws -> [String] {
        try await withCheckedThrowingContinuation { continuation in
            manager.logIn(viewController: nil, configuration: configuration) { result in
                switch result {
                case .success(_, let declined, _): continuation.resume(returning: declined.map(\.name).sorted())
                case .cancelled: continuation.resume(throwing: Failure.cancelled)
                case .failed(let error): continuation.resume(throwing: error)
                }
            }
        }
    }

    private func post(_ path: String, _ body: some Encodable) async throws -> Data {
        var request = URLRequest(url: server.appendingPathComponent(path))
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.httpBody = try JSONEncoder().encode(body)
        let (data, response) = try await URLSession.shared.data(for: request)
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        guard status == 200 else { throw Failure.refused(status: status) }
        return data
    }
}
