internal import LLHTTP
internal import Synchronization

/// The values of the revoked logins.
///
/// It has 64 parts with a lock each. A verdict holds one part's lock for one look-up, and so does a writer for each
/// entry, so no verdict waits for a reading of the whole set.
final class RevocationTable: Sendable {
    static let partCount = 64

    private typealias Part = Locked<[RevokedLogin: RevocationValue]>

    private let parts = (0..<partCount).map { _ in Part([:]) }
    private let filled = Atomic<Int>(0)

    /// The number of logins in the table.
    var count: Int { filled.load(ordering: .acquiring) }

    private func part(of login: RevokedLogin) -> Part {
        parts[Int(truncatingIfNeeded: login.user ^ login.app) & (Self.partCount - 1)]
    }

    func value(of login: RevokedLogin) -> RevocationValue? { part(of: login).withLock { $0[login] } }

    func set(_ value: RevocationValue, of login: RevokedLogin) {
        let isNew = part(of: login).withLock { $0.updateValue(value, forKey: login) == nil }
        if isNew { filled.add(1, ordering: .releasing) }
    }

    /// The revocations of one part with certain values.
    func revocations(inPart index: Int, where isWanted: (RevocationValue) -> Bool) -> [Revocation] {
        parts[index].withLock { values in
            values.compactMap { login, value in isWanted(value) ? value.revocation(of: login) : nil }
        }
    }

    func remove(where isUnwanted: (RevocationValue) -> Bool) {
        for part in parts {
            let removed = part.withLock { values in
                let count = values.count
                values = values.filter { !isUnwanted($0.value) }
                return count - values.count
            }
            filled.subtract(removed, ordering: .releasing)
        }
    }
}
