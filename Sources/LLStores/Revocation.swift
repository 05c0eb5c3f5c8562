internal import LLBytes

/// The name of a login among the revocations: a person and an app, in 16 bytes.
///
/// Two ids of digits, as Facebook's are, are stored as numbers. Any other pair is stored as a hash of 127 bits.
package struct RevokedLogin: Hashable, Sendable {
    /// The first bit marks a hash.
    private static let hashMark: UInt64 = 1 << 63

    /// The person's number, or the first half of the hash; never 0.
    let user: UInt64
    /// The app's number, or the second half of the hash.
    let app: UInt64

    fileprivate var isHash: Bool { user & Self.hashMark != 0 }
}

extension RevokedLogin {
    /// The name of a person's login to an app; nil if OpenSSL fails.
    init?(app: Span<UInt8>, user: Span<UInt8>) {
        if let userNumber = DecimalNumber.parse(user, user.indices), userNumber > 0,
            let appNumber = DecimalNumber.parse(app, app.indices), appNumber > 0
        {
            self.init(user: UInt64(userNumber), app: UInt64(appNumber))
        } else {
            guard let hash = ReplayKey(.login, scope: app, user) else { return nil }
            self.init(user: hash.high | Self.hashMark, app: hash.low)
        }
    }
}

/// The cause of a revocation. It matters for access tokens for which Graph does not report the time of issue.
package enum RevocationKind: Int64, Sendable {
    /// Facebook's own callback reported it. From then on Graph calls no earlier token valid.
    case callback = 0
    /// An operator or backend ordered it here. Graph may still call earlier tokens valid.
    case order = 1
}

/// A revocation: every token of the login that was issued in this second or before is refused.
package struct Revocation: Hashable, Sendable {
    let login: RevokedLogin
    /// Whole seconds since 1970.
    package var moment: Int64
    package var kind = RevocationKind.order

    /// The order among the revocations of one login. A later one wins; within one second `order` wins over `callback`.
    var rank: Int64 { moment << 1 | kind.rawValue }
}

/// The form of a revocation in Redis: `app:user:moment` in decimal, or with `#` and 32 hexadecimal digits for the
/// login. A revocation from a callback ends with `:c`.
extension Revocation {
    private static let hashSign = UInt8(ascii: "#")
    private static let colon = UInt8(ascii: ":")

    var member: [UInt8] {
        let end = kind == .callback ? ":\(moment):c" : ":\(moment)"
        guard login.isHash else { return Array("\(login.app):\(login.user)\(end)".utf8) }
        return [Self.hashSign] + ReplayKey(high: login.user, low: login.app).hexadecimal + Array(end.utf8)
    }

    /// The revocation of a member; nil for bytes that ``member`` would not have written.
    init?(member: [UInt8]) {
        var parts = member.split(separator: Self.colon, omittingEmptySubsequences: false)
        if parts.last == [UInt8(ascii: "c")] {
            kind = .callback
            parts.removeLast()
        }
        guard let last = parts.last, let moment = Self.number(last) else { return nil }
        if member.first == Self.hashSign {
            guard parts.count == 2, parts[0].count == 33, let bytes = Hexadecimal.decode(parts[0].dropFirst())
            else { return nil }
            let key = ReplayKey(bytes.span)
            login = RevokedLogin(user: key.high, app: key.low)
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
}

/// A login's entry in the table as one word: its moment, its kind, and its mark for Redis.
struct RevocationValue: Equatable {
    private static let markBits: UInt64 = 23

    /// The moment in the upper 40 bits (seconds, until the year 36,812), the kind in the next bit, the mark in the
    /// rest.
    let bits: UInt64

    /// The same as ``Revocation/rank``.
    var rank: Int64 { Int64(bits >> Self.markBits) }
    var moment: Int64 { rank >> 1 }
    var kind: RevocationKind { rank & 1 == RevocationKind.order.rawValue ? .order : .callback }
    var mark: UInt64 { bits & Self.markLimit }

    static let markLimit: UInt64 = 1 << markBits - 1
    /// The latest moment that fits: in the year 36,812.
    static let greatestMoment: Int64 = 1 << 40 - 1
}

extension RevocationValue {
    init(_ revocation: Revocation, mark: UInt64) { bits = UInt64(max(0, revocation.rank)) << Self.markBits | mark }

    func revocation(of login: RevokedLogin) -> Revocation { Revocation(login: login, moment: moment, kind: kind) }
}
