/// A login as an app would ask Facebook for it, checked before anyone is asked.
///
/// Facebook's SDK leaves it to the dialog to refuse a permission outside the limited scope; a backend that
/// hands out permissions and nonces can know at once.
public struct LoginConfiguration: Equatable, Sendable {
    /// The permissions to ask for.
    public let permissions: [Permission]
    /// The nonce to give to the app.
    public let nonce: Nonce

    /// A Limited Login with these permissions.
    /// - Parameters:
    ///   - permissions: names such as `user_friends`; each within the limited scope and given once.
    ///   - nonce: a nonce of one's own; nil makes one.
    public init(permissions: [String], nonce: String? = nil) throws(LoginConfigurationError) {
        var known: [Permission] = []
        for name in permissions {
            guard let permission = Permission(name: name.utf8.span) else { throw .outsideLimitedScope(name) }
            guard !known.contains(permission) else { throw .repeatedPermission(permission) }
            known.append(permission)
        }
        self.permissions = known
        guard let nonce else {
            self.nonce = Nonce.generate()
            return
        }
        guard let checked = Nonce(nonce) else { throw .invalidNonce }
        self.nonce = checked
    }
}

/// Why a login cannot be asked for.
public enum LoginConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The permission is not one of the twelve of Limited Login.
    case outsideLimitedScope(String)
    /// The permission is given twice.
    case repeatedPermission(Permission)
    /// The nonce is empty or holds white space.
    case invalidNonce

    /// One sentence for the person who asked.
    public var description: String {
        switch self {
        case .outsideLimitedScope(let name):
            "\(name.debugDescription) is outside the scope of Limited Login; it has: "
                + Permission.allCases.map(\.rawValue).joined(separator: ", ") + "."
        case .repeatedPermission(let permission): "The permission \(permission.rawValue) is given twice."
        case .invalidNonce: "The nonce is empty or holds white space."
        }
    }
}
