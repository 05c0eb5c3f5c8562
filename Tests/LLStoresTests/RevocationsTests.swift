import LLHTTP
import Testing

@testable import LLStores

@Suite("The copy of the revoked logins")
struct RevocationsTests {
    static let now: Int64 = 1_700_000_000

    /// Revokes a login. Returns the answer if it is known at once.
    @discardableResult
    static func revoke(
        _ revocations: Revocations,
        _ user: String,
        app: String = "42",
        at moment: Int64 = now,
        kind: RevocationKind = .order
    ) -> Bool? {
        let answer = Locked<Bool?>(nil)
        revocations.revoke(app: app.utf8.span, user: user.utf8.span, at: moment, kind: kind) { given in
            answer.withLock { $0 = given }
        }
        return answer.withLock { $0 }
    }

    static func isRevoked(_ revocations: Revocations, _ user: String, app: String = "42", issuedAt: Int64) -> Bool {
        revocations.isRevoked(app: app.utf8.span, user: user.utf8.span, issuedAt: issuedAt)
    }

    private static func login(_ app: String, _ user: String) throws -> ReplayKey {
        let login = ReplayKey(app: app.utf8.span, user: user.utf8.span)
        return try #require(login)
    }

    @Test(
        "Tokens of the person and app issued up to the second of the revocation are refused, and no others",
        arguments: [
            ("1000200030004000", "123456789012345"), ("7", "1"), ("999999999999999999", "999999999999999999"),
            ("1000000000000000000", "42"), ("0", "42"), ("01", "42"), ("5", "0"), ("jo@example.com", "my-app"),
            (String(repeating: "x", count: 255), String(repeating: "y", count: 255)), ("", ""), ("1 ", "42"),
        ]
    )
    func moments(user: String, app: String) {
        let revocations = Revocations(clock: { Self.now })
        #expect(!Self.isRevoked(revocations, user, app: app, issuedAt: Self.now))
        #expect(Self.revoke(revocations, user, app: app) == true)
        for (issuedAt, isRevoked) in [(0, true), (Self.now - 1, true), (Self.now, true), (Self.now + 1, false)] {
            #expect(Self.isRevoked(revocations, user, app: app, issuedAt: issuedAt) == isRevoked, "\(issuedAt)")
        }
        #expect(!Self.isRevoked(revocations, user + "1", app: app, issuedAt: Self.now))
        #expect(!Self.isRevoked(revocations, user, app: app + "1", issuedAt: Self.now))
        #expect(!Self.isRevoked(revocations, app + "2", app: user, issuedAt: Self.now))
        #expect(revocations.count == 1)
    }

    @Test("Ids that look alike differ: leading zeros, person and app exchanged, or a moved border between them")
    func names() throws {
        let pairs = [
            ("1", "23"), ("12", "3"), ("23", "1"), ("3", "12"), ("01", "23"), ("1", "023"), ("", "123"), ("123", ""),
            ("02", "23"), ("1000000000000000001", "23"), ("1", "1000000000000000023"),
        ]
        let names = try pairs.map { try Self.login($0.0, $0.1) }
        #expect(Set(names).count == pairs.count)
    }

    @Test("Only a newer moment replaces an older one, and a moment ahead is cut to the greatest skew")
    func order() {
        let revocations = Revocations(clock: { Self.now })
        let now = Self.now
        for (user, moment, last) in [
            ("1", now - 100, now - 100), ("1", now - 50, now - 50), ("1", now - 100, now - 50),
            ("1", now + 50, now + 50), ("1", .max, now + 300), ("2", .min, 0),
        ] as [(String, Int64, Int64)] {
            #expect(Self.revoke(revocations, user, at: moment) == true)
            #expect(Self.isRevoked(revocations, user, issuedAt: last))
            #expect(!Self.isRevoked(revocations, user, issuedAt: last + 1))
        }
    }

    private static let histories: [(all: [(Int64, RevocationKind)], moment: Int64, kind: RevocationKind)] = [
        ([(100, .callback)], 100, .callback), ([(100, .order)], 100, .order),
        ([(100, .order), (101, .callback)], 101, .callback), ([(101, .callback), (100, .order)], 101, .callback),
        ([(100, .callback), (101, .order)], 101, .order), ([(101, .order), (100, .callback)], 101, .order),
        ([(100, .callback), (100, .order)], 100, .order), ([(100, .order), (100, .callback)], 100, .order),
    ]

    @Test(
        "The later revocation counts with its kind; in the same second the order counts, whichever comes first",
        arguments: histories
    )
    func kinds(_ all: [(Int64, RevocationKind)], moment: Int64, kind: RevocationKind) {
        let revocations = Revocations(clock: { Self.now })
        #expect(revocations.latest(app: "42".utf8.span, user: "1".utf8.span) == nil)
        for (moment, kind) in all { Self.revoke(revocations, "1", at: moment, kind: kind) }
        let latest = revocations.latest(app: "42".utf8.span, user: "1".utf8.span)
        #expect(latest?.moment == moment && latest?.kind == kind)
        #expect(Self.isRevoked(revocations, "1", issuedAt: moment))
        #expect(!Self.isRevoked(revocations, "1", issuedAt: moment + 1))
    }

    @Test("At the bound a new login is refused and none is forgotten; after 90 days there is room again")
    func bound() {
        let time = Locked(Self.now)
        let revocations = Revocations(capacity: 1_000, clock: { time.withLock { $0 } })
        for number in 0..<1_000 { #expect(Self.revoke(revocations, "\(number)") == true) }
        #expect(Self.revoke(revocations, "1000") == false)
        #expect(!Self.isRevoked(revocations, "1000", issuedAt: 0))
        // Known logins need no further room.
        time.withLock { $0 += 7 }
        #expect(Self.revoke(revocations, "999", at: Self.now + 7) == true)
        #expect((0..<1_000).allSatisfy { Self.isRevoked(revocations, "\($0)", issuedAt: Self.now) })
        time.withLock { $0 = Self.now + Revocations.lifetimeSeconds + 5 }
        #expect(Self.revoke(revocations, "1000", at: Self.now + Revocations.lifetimeSeconds + 5) == true)
        #expect(revocations.count == 2)
        #expect(Self.isRevoked(revocations, "999", issuedAt: Self.now + 7))
    }

    @Test("A revocation dated ahead by another replica is cut once, at its first reading, to now plus the skew")
    func datedAhead() throws {
        let clock = Locked(Self.now)
        let revocations = Revocations(clock: { clock.withLock { $0 } }, skew: .seconds(60), wake: {})
        let ahead = Revocation(login: try Self.login("42", "1"), moment: Self.now + 3_600)
        let near = Revocation(login: try Self.login("42", "2"), moment: Self.now + 60)
        _ = revocations.merge([ahead, near], serverTime: Self.now)
        for passed: Int64 in [0, 1, 61, 1_800, 3_600, 7_200] {
            clock.withLock { $0 = Self.now + passed }
            _ = revocations.merge([ahead, near], serverTime: Self.now + passed)
            for user in ["1", "2"] {
                #expect(Self.isRevoked(revocations, user, issuedAt: Self.now + 60))
                #expect(!Self.isRevoked(revocations, user, issuedAt: Self.now + 61))
            }
        }
        // A later revocation is accepted as usual.
        _ = revocations.merge([Revocation(login: ahead.login, moment: Self.now + 5_000)], serverTime: Self.now)
        #expect(Self.isRevoked(revocations, "1", issuedAt: Self.now + 5_000))
    }

    @Test("If this machine's clock is late, the server's clock shows it, and nothing is cut")
    func lateReader() throws {
        let revocations = Revocations(clock: { Self.now - 3_600 }, skew: .seconds(60), wake: {})
        _ = revocations.merge([Revocation(login: try Self.login("42", "1"), moment: Self.now)], serverTime: Self.now)
        #expect(Self.isRevoked(revocations, "1", issuedAt: Self.now))
    }

    @Test("A revocation that this replica dated ahead stays, and is not written to Redis again and again")
    func ownAhead() throws {
        let clock = Locked(Self.now + 3_600)
        let revocations = Revocations(clock: { clock.withLock { $0 } }, skew: .seconds(60), wake: {})
        let own = Revocation(login: try Self.login("42", "1"), moment: Self.now + 3_600)
        _ = revocations.merge([own], serverTime: Self.now)
        clock.withLock { $0 = Self.now }
        revocations.beginReading()
        _ = revocations.merge([own], serverTime: Self.now)
        #expect(Self.isRevoked(revocations, "1", issuedAt: Self.now + 3_600))
        revocations.didRead(at: MonotonicClock.now(), isWhole: true)
        #expect(revocations.lacking(atMost: 10).isEmpty)
    }

    @Test("While the moment of an order lies in the future its tokens are in doubt; afterwards they are revoked")
    func doubt() {
        let clock = Locked(Self.now)
        let events = Locked<[ReplayStoreEvent]>([])
        let revocations = Revocations(
            clock: { clock.withLock { $0 } },
            observe: { event in events.withLock { $0.append(event) } }
        )
        func isInDoubt(_ user: String) -> Bool? {
            revocations.latest(app: "42".utf8.span, user: user.utf8.span).map(revocations.isInDoubt)
        }
        #expect(Self.revoke(revocations, "before", at: Self.now) == true)
        // The clock is an hour ahead for a moment.
        clock.withLock { $0 = Self.now + 3_600 }
        #expect(Self.revoke(revocations, "ahead", at: Self.now + 3_600) == true)
        #expect(Self.revoke(revocations, "callback", at: Self.now + 3_600, kind: .callback) == true)
        #expect(isInDoubt("ahead") == false && events.withLock { $0.isEmpty })
        for (time, expected) in [(0, true), (3_594, true), (3_605, true), (3_606, false)] as [(Int64, Bool)] {
            clock.withLock { $0 = Self.now + time }
            #expect(isInDoubt("ahead") == expected, "\(time)")
            #expect(isInDoubt("before") == false && isInDoubt("callback") == false)
            #expect(Self.isRevoked(revocations, "ahead", issuedAt: Self.now + 3_600))
        }
        // Another replica reads the order early, and cuts it to a minute after that.
        let login = ReplayKey(high: 7, low: 42)
        clock.withLock { $0 = Self.now }
        _ = revocations.merge([Revocation(login: login, moment: Self.now + 3_600)])
        for (time, expected) in [(2, true), (57, true), (65, true), (66, false)] as [(Int64, Bool)] {
            clock.withLock { $0 = Self.now + time }
            #expect(isInDoubt("7") == expected, "\(time)")
        }
        // The doubt is reported once.
        #expect(events.withLock { $0 } == [.revokedAhead(until: UInt64(Self.now + 3_600) * 1_000)])
    }

    @Test("Before the first reading of Redis nothing is known; a memory without Redis is known at once")
    func known() {
        #expect(Revocations().isKnown)
        #expect(Revocations().age(at: MonotonicClock.now()) == .zero)
        let shared = Revocations(wake: {})
        #expect(!shared.isKnown)
        #expect(shared.age(at: MonotonicClock.now()) == nil)
        let moment = MonotonicClock.now()
        shared.didRead(at: moment)
        #expect(shared.isKnown)
        #expect(shared.age(at: moment + .seconds(7)) == .seconds(7))
    }

    @Test("While Redis is away a revocation applies here and says so; a waiting one is answered when Redis goes away")
    func away() {
        let revocations = Revocations(clock: { Self.now }, wake: {})
        let answers = Locked<[Bool]>([])
        func revoke(_ user: String) {
            revocations.revoke(app: "42".utf8.span, user: user.utf8.span, at: Self.now) { answer in
                answers.withLock { $0.append(answer) }
            }
        }
        revoke("1")
        #expect(answers.withLock { $0 }.isEmpty)
        #expect(Self.isRevoked(revocations, "1", issuedAt: Self.now))
        revocations.setLink(.down)
        #expect(answers.withLock { $0 } == [false])
        revoke("2")
        #expect(answers.withLock { $0 } == [false, false])
        #expect(Self.isRevoked(revocations, "2", issuedAt: Self.now))
        #expect(revocations.hasWork)
        #expect(Set(revocations.lacking(atMost: 10).map(\.login.high)) == [1, 2])
    }

    @Test("Revocations beyond those that can wait for Redis apply here and are written later")
    func flood() {
        let revocations = Revocations(clock: { Self.now }, wake: {})
        revocations.setLink(.up)
        for number in 0..<Revocations.waitingLimit {
            #expect(Self.revoke(revocations, "\(number)") == nil)
        }
        #expect(revocations.lacking(atMost: .max).isEmpty)
        #expect(Self.revoke(revocations, "one-more") == false)
        #expect(revocations.lacking(atMost: .max).count == Revocations.waitingLimit + 1)
    }

    @Test("A revocation is parsed from its member in Redis, and other members are ignored")
    func members() throws {
        for (app, user) in [("42", "1000200030004000"), ("my-app", "jo"), ("0", "007")] {
            let login = try Self.login(app, user)
            for kind in [RevocationKind.order, .callback] {
                let revocation = Revocation(login: login, moment: Self.now, kind: kind)
                #expect(Revocation(member: Array(revocation.member.utf8)) == revocation)
                #expect(revocation.member.utf8.count < 60)
                #expect(Revocation(login, rank: revocation.rank) == revocation)
            }
        }
        let bad = [
            "", ":", "::", "1:2", "1:2:", ":2:3", "1::3", "1:2:3:4", "01:2:3", "1:02:3", "1:2:03", "-1:2:3", "1:2:-3",
            "1:2:3 ", "1:2:1234567890123456789", "0:2:3", "1:0:3", "a:2:3", "#:3", "#00:3",
            "#00000000000000000000000000000000:3", "#ffffffffffffffffffffffffffffff:3",
            "#gfffffffffffffffffffffffffffffff:3", "#ffffffffffffffffffffffffffffffff", "1:2:3\n",
            "1:2:3:", "1:2:3:C", "1:2:3:o", "1:2:3:c:c", "1:2:c", "c", ":c", "1:2:3:c ", "1:2::c",
        ]
        for text in bad { #expect(Revocation(member: Array(text.utf8)) == nil, "\(text)") }
    }
}

extension Revocations {
    /// True if the login was revoked in the second of the token's issue, or later.
    func isRevoked(app: Span<UInt8>, user: Span<UInt8>, issuedAt: Int64) -> Bool {
        latest(app: app, user: user).map { issuedAt <= $0.moment } ?? false
    }
}
