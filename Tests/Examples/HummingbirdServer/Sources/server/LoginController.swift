import Foundation
import Hummingbird
import KeySets
import LimitedLogin

/// The two requests of a login: one gives the app a nonce, one takes the token that came of it.
struct LoginController {
    let verifier: LoginVerifier<JWKSetCache>
    let nonces: NonceStore

    struct Begun: ResponseEncodable {
        let nonce: String
    }

    struct Login: Decodable {
        let idToken: String
        let nonce: String

        enum CodingKeys: String, CodingKey {
            case idToken = "id_token"
            case nonce
        }
    }

    struct Person: ResponseEncodable {
        let id: String
        let name: String?
        let email: String?
    }

    func begin() async -> Begun { Begun(nonce: await nonces.make()) }

    @Sendable
    func finish(request: Request, context: BasicRequestContext) async throws -> Person {
        let login = try await request.decode(as: Login.self, context: context)
        // It is taken before the token is judged, so that of two requests at once one has it.
        guard let deadline = await nonces.take(login.nonce) else {
            throw HTTPError(.unauthorized, message: "This login was not begun here, or was finished already.")
        }
        do {
            let verified = try await verifier.verify(login.idToken, nonce: login.nonce)
            return Person(
                id: verified.profile.userID,
                name: verified.profile.name,
                email: verified.profile.email
            )
        } catch let rejection as TokenRejection {
            throw HTTPError(.unauthorized, message: "\(rejection)")
        } catch is VerificationUnavailable {
            // Nobody can tell whether the token is good: the app tries again with the same token, so its nonce is kept.
            await nonces.keep(login.nonce, until: deadline)
            throw HTTPError(.serviceUnavailable, message: "Try again shortly.")
        }
    }
}
