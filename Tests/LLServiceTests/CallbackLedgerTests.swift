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
        case .answered: "answered"
        case .refused: "refused"
        case .underWay: "under way"
        }
    }

    private static func begin(_ ledger: inout CallbackLedger, _ id: String) -> String { name(ledger.begin(id)) }

    @Test("One request delivers; its repetitions are refused meanwhile, and answered from memory afterwards")
    func repetitions() {
        var ledger = CallbackLedger(places: 2)
        // Another callback takes a place of its own.
        let steps = ["a", "a", "b", "c"].map { Self.begin(&ledger, $0) }
        #expect(steps == ["perform", "under way", "perform", "refused"])
        ledger.end("a", .acknowledged(Self.status))
        guard case .answered(let status) = ledger.begin("a") else { Issue.record("not remembered"); return }
        #expect(status == Self.status)
        #expect(Self.begin(&ledger, "b") == "under way")
    }

    @Test("Ids that failed before get at most half of the places, so new ids find the others")
    func retries() {
        var ledger = CallbackLedger(places: 4)
        for id in ["a", "b", "c"] {
            #expect(Self.begin(&ledger, id) == "perform")
            ledger.end(id, .failed)
        }
        #expect(["a", "b", "c"].map { Self.begin(&ledger, $0) } == ["retry", "retry", "refused"])
        #expect(["x", "y", "z"].map { Self.begin(&ledger, $0) } == ["perform", "perform", "refused"])
        ledger.end("a", .acknowledged(nil))
        #expect(["c", "a"].map { Self.begin(&ledger, $0) } == ["retry", "answered"])
    }

    @Test("A delivered callback is not delivered again if only the other replicas lack the revocation")
    func halfDone() {
        var ledger = CallbackLedger(places: 1)
        #expect(Self.begin(&ledger, "a") == "perform")
        ledger.end("a", .delivered(Self.status))
        guard case .perform(.delivered(let status)?) = ledger.begin("a") else { Issue.record("lost"); return }
        #expect(status == Self.status)
        ledger.end("a", .acknowledged(status))
        #expect(Self.begin(&ledger, "a") == "answered")
    }

    @Test("The memory is bounded; the oldest entries go first")
    func bounds() {
        var ledger = CallbackLedger(places: 1)
        for number in 0...CallbackLedger.memoryLimit {
            #expect(Self.begin(&ledger, "\(number)") == "perform")
            ledger.end("\(number)", .acknowledged(nil))
        }
        #expect(["1", "0"].map { Self.begin(&ledger, $0) } == ["answered", "perform"])
    }
}
