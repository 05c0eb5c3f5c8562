import Foundation

#if canImport(FBSDKLoginKit)
import FBSDKLoginKit
#endif

/// The same login with Facebook's own button. A tapped button does not ask for a nonce, so it gets one before, and
/// another one after each attempt.
@MainActor
final class ServerLoginButton: NSObject, LoginButtonDelegate {
    let button = FBLoginButton()
    private let server: ServerLogin
    private let done: @MainActor (Result<Data, any Error>) -> Void
    private var begun: ServerLogin.Begun?

    /// - Parameter done: called with the server's answer, or with the error.
    init(server: ServerLogin, done: @escaping @MainActor (Result<Data, any Error>) -> Void) {
        self.server = server
        self.done = done
        super.init()
        button.permissions = ["public_profile", "email"]
        // The button's default is .enabled.
        button.loginTracking = .limited
        button.delegate = self
    }

    /// Begins a login at the server. Call it before the button is shown.
    func prepare() async throws {
        let begun = try await server.begin()
        button.nonce = begun.nonce
        // The button drops an invalid nonce, and would log in with one that no server knows.
        guard button.nonce == begun.nonce else { throw ServerLogin.Failure.noToken }
        self.begun = begun
    }

    func loginButtonWillLogin(_ loginButton: FBLoginButton) -> Bool { begun != nil }

    func loginButton(
        _ loginButton: FBLoginButton,
        didCompleteWith result: LoginManagerLoginResult?,
        error: (any Error)?
    ) {
        guard let begun else { return }
        self.begun = nil
        let declined = result?.declinedPermissions.sorted() ?? []
        let failure = error ?? (result?.isCancelled == false ? nil : ServerLogin.Failure.cancelled)
        Task {
            do {
                if let failure { throw failure }
                done(.success(try await server.finish(begun, declined: declined)))
            } catch {
                done(.failure(error))
            }
            try? await prepare()
        }
    }

    func loginButtonDidLogOut(_ loginButton: FBLoginButton) {}
}
