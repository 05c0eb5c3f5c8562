import Sockets
import Testing

@testable import LoginStores

@Suite("What is sent to Redis about revocations, and what its answers mean")
struct RedisExchangesTests {
    @Test(
        "What answers no command about revocations ends the exchange, with the reason",
        arguments: [
            (RedisReply.error(code: "NOPERM"), RedisFailure.notPermitted), (.error(code: "OOM"), .outOfMemory),
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
        // Tried again after growing pauses, for as long as it lasts.
        Replica.pass(.seconds(10), replica)
        #expect((10...30).contains(replica.failures.count), "\(replica.failures.count)")
        replica.revoke("7")
        #expect(replica.answers == [.rememberedHereOnly])
        server.page = nil
        Replica.pass(.seconds(3), replica)
        #expect(replica.revocations.isKnown)
        #expect(server.members.count == 1)
        replica.revoke("8")
        replica.turn()
        #expect(replica.answers.last == .remembered)
    }
}
