import LLHTTP
import Testing

@testable import LLService

@Suite("Callbacks in delivery, and the remembered callbacks of the day")
struct CallbackLedgerTests {
    private static let status = DeletionStatus(url: "https://b.example/", confirmationCode: "c")

    private static func name(_ step: CallbackLedger.Step) -> String {
        switch step {
        case .perform(nil): "perform"
        case .perform(.failed?): "retry"
        case .perform(.delivered?): "finish"
        case .perform(.acknowledged?): "never"
        case .wait: "wait"
        case .answered: "answered"
        case .refused: "refused"
        case .repetitionRefused: "repetition refused"
        }
    }

    private static func begin(_ ledger: inout CallbackLedger, _ id: String) -> String {
        name(ledger.begin(id) { _ in })
    }

    @Test("One request delivers, its repetitions wait up to their bound, and all are answered when the delivery ends")
    func repetitions() {
        var ledger = CallbackLedger(places: 2)
        #expect(Self.begin(&ledger, "a") == "perform")
        for _ in 0..<CallbackLedger.repetitionLimit { #expect(Self.begin(&ledger, "a") == "wait") }
        #expect(Self.begin(&ledger, "a") == "repetition refused")
        // Another callback takes a place of its own.
        #expect(Self.begin(&ledger, "b") == "perform")
        #expect(Self.begin(&ledger, "c") == "refused")
        #expect(ledger.end("a", .acknowledged(Self.status)).count == CallbackLedger.repetitionLimit + 1)
        #expect(ledger.end("a", .failed).isEmpty)
        guard case .answered(let status) = ledger.begin("a", { _ in }) else { Issue.record("not remembered"); return }
        #expect(status == Self.status)
        #expect(Self.begin(&ledger, "b") == "wait")
        #expect(ledger.end("b", .failed).count == 2)
    }

    @Test("A repetition gives up its place when its client has left")
    func leftClients() {
        var ledger = CallbackLedger(places: 2)
        let hasLeft = Locked(false)
        #expect(Self.begin(&ledger, "a") == "perform")
        for _ in 0..<CallbackLedger.repetitionLimit - 1 {
            #expect(Self.name(ledger.begin("a", isAwaited: { !hasLeft.withLock { $0 } }) { _ in }) == "wait")
        }
        #expect(Self.begin(&ledger, "a") == "wait")
        #expect(Self.begin(&ledger, "a") == "repetition refused")
        hasLeft.withLock { $0 = true }
        #expect(Self.begin(&ledger, "a") == "wait")
        // The first request, one repetition that stayed, and the new one.
        #expect(ledger.end("a", .failed).count == 3)
    }

    @Test("Ids that failed before get at most half of the places, so new ids find the others")
    func retries() {
        var ledger = CallbackLedger(places: 4)
        for id in ["a", "b", "c"] {
            #expect(Self.begin(&ledger, id) == "perform")
            _ = ledger.end(id, .failed)
        }
        #expect(["a", "b", "c"].map { Self.begin(&ledger, $0) } == ["retry", "retry", "refused"])
        #expect(["x", "y", "z"].map { Self.begin(&ledger, $0) } == ["perform", "perform", "refused"])
        _ = ledger.end("a", .acknowledged(nil))
        #expect(Self.begin(&ledger, "c") == "retry")
        #expect(Self.begin(&ledger, "a") == "answered")
    }

    @Test("A delivered callback is not delivered again if only the other replicas lack the revocation")
    func halfDone() {
        var ledger = CallbackLedger(places: 1)
        #expect(Self.begin(&ledger, "a") == "perform")
        _ = ledger.end("a", .delivered(Self.status))
        guard case .perform(.delivered(let status)?) = ledger.begin("a", { _ in }) else { Issue.record("lost"); return }
        #expect(status == Self.status)
        _ = ledger.end("a", .acknowledged(status))
        #expect(Self.begin(&ledger, "a") == "answered")
    }

    @Test("The memory is bounded by number and by size; the oldest entries go first")
    func bounds() {
        var ledger = CallbackLedger(places: 1)
        for number in 0...CallbackLedger.memoryLimit {
            #expect(Self.begin(&ledger, "\(number)") == "perform")
            _ = ledger.end("\(number)", .acknowledged(nil))
        }
        #expect(Self.begin(&ledger, "1") == "answered")
        #expect(Self.begin(&ledger, "0") == "perform")
        _ = ledger.end("0", .acknowledged(nil))
        // Answers of 4 KiB each: 256 fit.
        let long = DeletionStatus(
            url: String(repeating: "u", count: 2_048),
            confirmationCode: String(repeating: "c", count: 2_048)
        )
        for number in 1...257 {
            #expect(Self.begin(&ledger, "long-\(number)") == "perform")
            _ = ledger.end("long-\(number)", .acknowledged(long))
        }
        #expect(Self.begin(&ledger, "long-2") == "answered")
        #expect(Self.begin(&ledger, "long-1") == "perform")
    }
}
