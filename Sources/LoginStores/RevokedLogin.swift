internal import Bytes

/// The name of a login among the revocations: a person and an app, in 16 bytes.
///
/// Two ids of digits stand for themselves, as Facebook's do. Of any others a hash of 127 bits stands for both.
package struct RevokedLogin: Hashable, Sendable {
    /// The first bit says that this is a hash.
    private static let hashMark: UInt64 = 1 << 63

    /// The person's number, or the first half of the hash; never 0.
    let user: UInt64
    /// The app's number, or the other half.
    let app: UInt64

    init(user: UInt64, app: UInt64) {
        self.user = user
        self.app = app
    }

    /// The name of a person's login to an app; nil where OpenSSL fails.
    package init?(app: Span<UInt8>, user: Span<UInt8>) {
        if let userNumber = DecimalNumber.parse(user, user.indices), userNumber > 0,
            let appNumber = DecimalNumber.parse(app, app.indices), appNumber > 0
        {
            self.init(user: UInt64(userNumber), app: UInt64(appNumber))
        } else {
            guard let hash = ReplayKey(.login, scope: app, user) else { return nil }
            self.init(user: hash.high | Self.hashMark, app: hash.low)
        }
    }

    fileprivate var isHash: Bool { user & Self.hashMark != 0 }
}

/// Every token of the login that was issued in this second or before is refused.
struct Revocation: Hashable, Sendable {
    let login: RevokedLogin
    /// Whole seconds since 1970.
    let moment: Int64
}

/// How Redis holds a revocation: as `app:user:moment` in decimal, or with `#` and 32 hexadecimal digits for the login.
extension Revocation {
    private static let hashSign = UInt8(ascii: "#")
    private static let colon = UInt8(ascii: ":")

    var member: [UInt8] {
        guard login.isHash else { return Array("\(login.app):\(login.user):\(moment)".utf8) }
        return [Self.hashSign] + ReplayKey(high: login.user, low: login.app).hexadecimal + Array(":\(moment)".utf8)
    }

    /// Nil for bytes that ``member`` would not have written.
    init?(member: [UInt8]) {
        let parts = member.split(separator: Self.colon, omittingEmptySubsequences: false)
        guard let last = parts.last, let moment = Self.number(last) else { return nil }
        if member.first == Self.hashSign {
            guard parts.count == 2, parts[0].count == 33, let bytes = Hexadecimal.decode(parts[0].dropFirst())
            else { return nil }
            let (high, low) = (Self.word(bytes[..<8]), Self.word(bytes[8...]))
            login = RevokedLogin(user: high, app: low)
            guard login.isHash else { return nil }
        } else {
            guard parts.count == 3, let app = Self.number(parts[0]), let user = Self.number(parts[1]), app > 0, user > 0
            else { return nil }
            login = RevokedLogin(user: UInt64(user), app: UInt64(app))
        }
        self.moment = Int64(moment)
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        DecimalNumber.parse(digits.span, 0..<digits.count)
    }

    private static func word(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
}
