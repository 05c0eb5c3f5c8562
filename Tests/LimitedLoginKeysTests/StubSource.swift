import Dispatch
import LLHTTP
import LimitedLoginKeys

/// A source that gives the test's answer and counts the fetches.
final class StubSource: JWKSetSource {
    typealias Answer = @Sendable (_ number: Int, _ validator: String?) throws(JWKSetSourceError) -> JWKSetAnswer

    private struct Storage {
        var answer: Answer
        var validators: [String?] = []
        var endCount = 0
        var isCancelled = false
    }

    let name: String
    private let storage: Locked<Storage>
    private let gate = DispatchSemaphore(value: 0)

    init(_ name: String = "stub", answer: @escaping Answer) {
        self.name = name
        storage = Locked(Storage(answer: answer))
    }

    /// A source of this set, until the test sets another answer.
    convenience init(_ name: String = "stub", keySet: [UInt8]) {
        self.init(name) { _, _ throws(JWKSetSourceError) in .fetched(JWKSetDocument(bytes: keySet)) }
    }

    /// A source of one key that answers when it is opened or cancelled.
    static func gated() -> StubSource {
        let source = StubSource(keySet: [])
        source.setAnswer { [gate = source.gate] _, _ throws(JWKSetSourceError) in
            gate.wait()
            return .fetched(JWKSetDocument(bytes: TestKeySet.json(["a"])))
        }
        return source
    }

    func open() { gate.signal() }

    var fetchCount: Int { storage.withLock { $0.validators.count } }
    var validators: [String?] { storage.withLock { $0.validators } }
    /// Fetches that have ended.
    var endCount: Int { storage.withLock { $0.endCount } }
    var isCancelled: Bool { storage.withLock { $0.isCancelled } }

    func setAnswer(_ answer: @escaping Answer) { storage.withLock { $0.answer = answer } }

    func setKeySet(_ keySet: [UInt8]) {
        setAnswer { _, _ throws(JWKSetSourceError) in .fetched(JWKSetDocument(bytes: keySet)) }
    }

    func fail(_ reason: String = "down") {
        setAnswer { _, _ throws(JWKSetSourceError) in throw JWKSetSourceError(reason) }
    }

    func fetch(validator: String?) throws(JWKSetSourceError) -> JWKSetAnswer {
        let (answer, number) = storage.withLock { storage in
            storage.validators.append(validator)
            return (storage.answer, storage.validators.count)
        }
        defer { storage.withLock { $0.endCount += 1 } }
        return try answer(number, validator)
    }

    func cancel() {
        storage.withLock { $0.isCancelled = true }
        gate.signal()
    }
}
