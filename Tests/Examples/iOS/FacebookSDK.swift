// The part of Facebook's SDK that the sketch uses, declared so that it can be typechecked without the SDK. Names and
// shapes are those of FBSDKLoginKit 18.
#if !canImport(FBSDKLoginKit)
import Foundation

enum LoginTracking {
    case enabled, limited
}

struct Permission: Hashable, ExpressibleByStringLiteral {
    let name: String

    init(stringLiteral name: String) { self.name = name }
}

struct LoginAuthType {
    static let rerequest = LoginAuthType()
}

struct LoginConfiguration {
    init?(
        permissions: Set<Permission>,
        tracking: LoginTracking,
        nonce: String,
        authType: LoginAuthType? = .rerequest
    ) {}
}

struct AuthenticationTokenClaims {
    let exp: TimeInterval
}

struct AuthenticationToken {
    @MainActor static var current: AuthenticationToken? { nil }
    let tokenString: String

    func claims() -> AuthenticationTokenClaims? { nil }
}

struct LoginManagerLoginResult {
    let isCancelled: Bool
    let declinedPermissions: Set<String>
}

@MainActor
final class FBLoginButton {
    var permissions: [String] = []
    var loginTracking = LoginTracking.enabled
    var nonce: String?
    weak var delegate: (any LoginButtonDelegate)?
}

@MainActor
protocol LoginButtonDelegate: AnyObject {
    func loginButton(
        _ loginButton: FBLoginButton,
        didCompleteWith result: LoginManagerLoginResult?,
        error: (any Error)?
    )
    func loginButtonDidLogOut(_ loginButton: FBLoginButton)
    func loginButtonWillLogin(_ loginButton: FBLoginButton) -> Bool
}

enum LoginResult {
    case success(granted: Set<Permission>, declined: Set<Permission>, token: String?)
    case cancelled
    case failed(any Error)
}

@MainActor
final class LoginManager {
    func logIn(
        viewController: AnyObject?,
        configuration: LoginConfiguration?,
        completion: @escaping (LoginResult) -> Void
    ) {}
}
#endif
