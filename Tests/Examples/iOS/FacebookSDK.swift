// The part of Facebook's SDK that the sketch uses, declared so that it can be typechecked where the SDK is not. Names and
// shapes are those of FBSDKLoginKit 18.
#if !canImport(FBSDKLoginKit)
enum LoginTracking {
    case enabled, limited
}

struct LoginConfiguration {
    init?(permissions: Set<String>, tracking: LoginTracking, nonce: String) {}
}

struct AuthenticationToken {
    @MainActor static var current: AuthenticationToken? { nil }
    let tokenString: String
}

enum LoginResult {
    case success(granted: Set<String>, declined: Set<String>, token: String?)
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
