import LLHTTP
import Testing

@testable import LLStores

@Suite("Commands to Redis about revocations, and their answers")
struct RedisExchangesTests {
    /// A change of the clocks between two exchanges.
    struct Disturbance: Sendable, CustomTestStringConvertible {
        var testDescription: String { name }
        let name: String
        /// Seconds by which the server's clock is set.
        var step: Int64 = 0
        /// Seconds for which the revoking replica's machine stands still. Its connection stays open.
        var writerStands: Int64 = 0
        var readerStands: Int64 = 0
        var writerRenews = false
        var readerRenews = false
    }

    @Test(
        "Other replicas know a revocation within 2 s, even if the server's clock is set or a machine stands still",
        arguments: [
            Disturbance(name: "none"),
            Disturbance(name: "forward, the reader connects anew", step: 60, readerRenews: true),
            Disturbance(name: "a little too far forward", step: 11, readerRenews: true),
            Disturbance(name: "forward by less than the overlap", step: 9, readerRenews: true),
            Disturbance(name: "forward, both connect anew", step: 60, writerRenews: true, readerRenews: true),
            Disturbance(name: "forward", step: 60),
            Disturbance(name: "back, the writer connects anew", step: -60, writerRenews: true),
            Disturbance(name: "a little too far back", step: -11, writerRenews: true),
            Disturbance(name: "a day back, both connect anew", step: -86_400, writerRenews: true, readerRenews: true),
            Disturbance(name: "back", step: -60),
            Disturbance(name: "the writer stood still", writerStands: 60),
            Disturbance(name: "the writer stood still for a little too long", writerStands: 11),
            Disturbance(name: "the reader stood still", readerStands: 60),
            Disturbance(name: "the reader stood still, and back", step: -60, readerStands: 70),
        ]
    )
    func clocks(disturbance: Disturbance) {
        let server = SortedSet()
        let (writer, reader) = (Replica(server), Replica(server))
        Replica.pass(.seconds(3), writer, reader)
        // One machine stands still while the other works.
        Replica.pass(.seconds(disturbance.writerStands), reader)
        Replica.pass(.seconds(disturbance.readerStands), writer)
        server.clock = server.clock.advanced(by: Int(disturbance.step * 1_000_000))
        if disturbance.readerRenews { reader.renew() }
        Replica.pass(.milliseconds(100), reader)
        if disturbance.writerRenews { writer.renew() }
        writer.revoke("7")
        Replica.pass(.milliseconds(1_900), writer, reader)
        #expect(reader.isRevoked("7"))
        // After the disturbance a new revocation is acknowledged and known just as soon.
        writer.revoke("8")
        Replica.pass(.milliseconds(1_900), writer, reader)
        #expect(reader.isRevoked("8"))
        #expect(writer.answers.last == true)
    }

    @Test("Redis keeps the kind of a revocation; in the same second the order counts, on every replica")
    func kinds() {
        let server = SortedSet()
        let (first, second) = (Replica(server), Replica(server))
        Replica.pass(.seconds(3), first, second)
        first.revoke("1", kind: .callback)
        second.revoke("2", kind: .order)
        Replica.pass(.milliseconds(1_900), first, second)
        #expect(second.kind(of: "1") == .callback && first.kind(of: "2") == .order)
        second.revoke("1", kind: .order)
        first.revoke("2", kind: .callback)
        first.revoke("2", at: Replica.now + 50, kind: .callback)
        Replica.pass(.milliseconds(1_900), first, second)
        #expect([first, second].allSatisfy { $0.kind(of: "1") == .order && $0.kind(of: "2") == .callback })
        // Superseded entries are removed.
        Replica.pass(.seconds(3), first, second)
        let texts: Set = ["42:1:\(Replica.now)", "42:2:\(Replica.now + 50):c"]
        #expect(server.texts == texts)
        // A replica that starts later reads the same entries. It writes them back to a server that came back empty.
        let late = Replica(server)
        Replica.pass(.seconds(3), first, second, late)
        #expect(late.kind(of: "1") == .order && late.kind(of: "2") == .callback)
        server.members = []
        late.renew(run: "b")
        Replica.pass(.seconds(3), late)
        #expect(server.texts == texts)
    }

    @Test("A revocation is not acknowledged but written again if the server's clock contradicts its score")
    func unconfirmed() {
        let server = SortedSet()
        let writer = Replica(server)
        Replica.pass(.seconds(3), writer)
        server.clock += 60_000_000
        writer.revoke("7")
        writer.turn()
        #expect(writer.answers == [false])
        Replica.pass(.seconds(1), writer)
        #expect(server.members.map(\.member) == [Array("42:7:\(Replica.now)".utf8)])
        #expect(server.members.allSatisfy { $0.score > Double(server.clock - 2_000_000) })
    }

    @Test("A revocation that Redis refuses twice is written as soon as Redis takes it")
    func refusedTwice() {
        let server = SortedSet()
        let writer = Replica(server)
        Replica.pass(.seconds(3), writer)
        server.refusal = .error(code: "OOM")
        writer.revoke("7")
        Replica.pass(.seconds(5), writer)
        #expect(writer.answers == [false] && writer.failures.count > 1)
        server.refusal = nil
        Replica.pass(.seconds(3), writer)
        #expect(server.members.count == 1)
    }

    @Test("A reading that outlasts its connection continues on the next one, unless the server was restarted")
    func slowReading() {
        let server = SortedSet()
        let (old, new) = (Replica(server), Replica(server))
        let logins = 4 * RedisRevocations.pageCount
        for user in 1...logins { old.revoke("\(user)") }
        Replica.pass(.seconds(1), old)
        #expect(server.members.count == logins)
        // Each connection reads two pages.
        for _ in 0..<4 {
            new.turn(atMost: 2)
            new.renew()
        }
        #expect(new.revocations.isKnown)
        #expect(new.revocations.count == logins)
        // Members that were written in one microsecond fill several pages.
        let score = server.members[0].score
        for index in server.members.indices { server.members[index].score = score }
        let third = Replica(server)
        third.turn()
        #expect(third.revocations.isKnown && third.revocations.count == logins)
        // A restarted server may have other data, so pages from before the restart do not count.
        let restarted = Replica(server)
        for run in ["b", "c", "d", "e"] {
            restarted.turn(atMost: 2)
            restarted.renew(run: run)
        }
        #expect(!restarted.revocations.isKnown)
    }

    @Test(
        "Expired members are removed, foreign ones ignored, and one deleted by hand is back after the next whole reading"
    )
    func wholeReadings() {
        let server = SortedSet()
        let old = Replica.now - Revocations.lifetimeSeconds - 10
        for moment in [old, old + 20] { server.members.append((Double(moment) * 1e6, Array("42:8:\(moment)".utf8))) }
        let (first, second) = (Replica(server), Replica(server))
        Replica.pass(.seconds(3), first, second)
        #expect(server.members.map(\.member) == [Array("42:8:\(old + 20)".utf8)])
        first.revoke("1")
        let score = Double(server.clock)
        server.members += [(score, Array("junk".utf8)), (score + 1, Array("42:9:99999999999".utf8))]
        Replica.pass(.seconds(2), first, second)
        #expect(second.isRevoked("1") && !second.isRevoked("9"))
        server.members = []
        Replica.pass(.seconds(601), first)
        #expect(server.texts == ["42:1:\(Replica.now)", "42:8:\(old + 20)"])
        #expect(first.failures.isEmpty && second.failures.isEmpty)
    }

    @Test(
        "A page that no sorted set can return is refused, and the connection is kept",
        arguments: [
            [("42:5:1", "inf"), ("42:5:1", "inf")], [("42:5:1", "-5"), ("42:5:1", "-5")], [("42:5:1", "nan")],
            [("42:5:1", "2"), ("42:6:1", "1")], [("b", "1"), ("a", "1")], [("a", "1"), ("a", "1")], [("a", "")],
            [("a", "x")], [("a", "0x")],
        ]
    )
    func pages(members: [(String, String)]) throws {
        let server = SortedSet()
        let replica = Replica(server)
        server.page = { _ in .array(members.flatMap { [.string(Array($0.0.utf8)), .string(Array($0.1.utf8))] }) }
        replica.turn()
        #expect(replica.failures == [.malformedAnswer])
        #expect(!replica.revocations.isKnown)
        server.page = nil
        Replica.pass(.seconds(1), replica)
        #expect(replica.revocations.isKnown)
    }

    @Test(
        "A bad answer to a command about revocations ends the exchange with the reason",
        arguments: [
            (RedisReply.error(code: "NOPERM"), RedisFailure.notPermitted(command: "ZRANGEBYSCORE")),
            (.error(code: "OOM"), .outOfMemory),
            (.error(code: "WRONGTYPE"), .refused(code: "WRONGTYPE")), (.null, .malformedAnswer),
            (.status("OK"), .malformedAnswer), (.array([.null]), .malformedAnswer), (.integer(1), .malformedAnswer),
        ]
    )
    func replies(reply: RedisReply, failure: RedisFailure) {
        let server = SortedSet()
        let replica = Replica(server)
        server.page = { _ in reply }
        replica.turn()
        #expect(replica.failures == [failure])
        // The exchange is tried again after growing pauses, for as long as the failure lasts.
        Replica.pass(.seconds(10), replica)
        #expect((10...30).contains(replica.failures.count), "\(replica.failures.count)")
        replica.revoke("7")
        #expect(replica.answers == [false])
        server.page = nil
        Replica.pass(.seconds(3), replica)
        #expect(replica.revocations.isKnown)
        #expect(server.members.count == 1)
        replica.revoke("8")
        replica.turn()
        #expect(replica.answers.last == true)
    }

    @Test("Endless pages are read up to a bound, and the table is not overfilled")
    func endless() {
        let server = SortedSet()
        let replica = Replica(server, capacity: 1_000)
        var pages = 0
        server.page = { page in
            pages += 1
            let start = 10_000 + pages * RedisRevocations.pageCount
            return .array(
                (start..<start + RedisRevocations.pageCount).flatMap { number -> [RedisReply] in
                    [.string(Array("42:\(number):\(Replica.now)".utf8)), .string(Array("\(number)".utf8))]
                }
            )
        }
        replica.turn()
        #expect(replica.failures == [.tooManyRevocations])
        #expect(pages <= 2 * (1_000 + Revocations.waitingLimit) / RedisRevocations.pageCount + 1)
        #expect(replica.revocations.count == 1_000 + Revocations.waitingLimit)
        #expect(!replica.revocations.isKnown)
    }
}
