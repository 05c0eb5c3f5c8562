internal import LLBytes

extension ReplayKey {
    /// The first bit of a hash.
    fileprivate static let hashMark: UInt64 = 1 << 63

    /// The name of a login among the revocations: the numbers of the person and the app, or a hash of 127 bits if one of
    /// the ids is no number. Nil if OpenSSL fails.
    init?(app: Span<UInt8>, user: Span<UInt8>) {
        if let userNumber = DecimalNumber.parse(user, user.indices), userNumber > 0,
            let appNumber = DecimalNumber.parse(app, app.indices), appNumber > 0
        {
            self.init(high: UInt64(userNumber), low: UInt64(appNumber))
        } else {
            guard let hash = ReplayKey(.login, scope: app, user) else { return nil }
            self.init(high: hash.high | Self.hashMark, low: hash.low)
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
    let login: ReplayKey
    /// Whole seconds since 1970.
    package var moment: Int64
    package var kind = RevocationKind.order

    /// The order among the revocations of one login. A later one wins; within one second `order` wins over `callback`.
    var rank: Int64 { moment << 1 | kind.rawValue }
}

extension Revocation {
    init(_ login: ReplayKey, rank: Int64) {
        self.init(login: login, moment: rank >> 1, kind: rank & 1 == RevocationKind.order.rawValue ? .order : .callback)
    }
}

/// The form of a revocation in Redis: `app:user:moment` in decimal, or with `#` and 32 hexadecimal digits for the
/// login. A revocation from a callback ends with `:c`.
extension Revocation {
    private static let hashSign = UInt8(ascii: "#")
    private static let colon = UInt8(ascii: ":")

    var member: [UInt8] {
        let end = kind == .callback ? ":\(moment):c" : ":\(moment)"
        guard login.high & ReplayKey.hashMark != 0 else { return Array("\(login.low):\(login.high)\(end)".utf8) }
        return [Self.hashSign] + login.hexadecimal + Array(end.utf8)
    }

    /// The revocation of a member; nil for bytes that ``member`` would not have written.
    init?(member: [UInt8]) {
        var parts = member.split(separator: Self.colon, omittingEmptySubsequences: false)
        if parts.last == [UInt8(ascii: "c")] {
            kind = .callback
            parts.removeLast()
        }
        guard let last = parts.last, let moment = DecimalNumber.parse(last) else { return nil }
        if member.first == Self.hashSign {
            guard parts.count == 2, parts[0].count == 33, let bytes = Hexadecimal.decode(parts[0].dropFirst())
            else { return nil }
            login = ReplayKey(bytes.span)
            guard login.high & ReplayKey.hashMark != 0 else { return nil }
        } else {
            guard parts.count == 3, let app = DecimalNumber.parse(parts[0]), let user = DecimalNumber.parse(parts[1]),
                app > 0, user > 0
            else { return nil }
            login = ReplayKey(high: UInt64(user), low: UInt64(app))
        }
        self.moment = Int64(moment)
    }
}
