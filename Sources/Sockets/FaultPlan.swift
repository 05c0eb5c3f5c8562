/// Makes chosen system calls of a server fail: for tests of what happens then.
package final class FaultPlan: Sendable {
    /// The calls that can be made to fail.
    package enum Call: Int, CaseIterable, Sendable {
        case accept, receive, send, shutdown, createPoll, control, wait, createEventDescriptor, createSpareDescriptor
    }

    private struct State {
        var counts = [Int](repeating: 0, count: Call.allCases.count)
        var openDescriptors = 0
    }

    private let call: Call
    private let numbers: Range<Int>
    private let errorNumber: Int32
    private let state = Locked(State())
    /// The most bytes one send takes; `Int.max` where a send is not cut short.
    let greatestTransfer: Int

    /// The calls of kind `call` numbered `numbers` (from 1) fail with `errorNumber`.
    package init(_ call: Call, _ numbers: Range<Int>, errorNumber: Int32, greatestTransfer: Int = .max) {
        self.call = call
        self.numbers = numbers
        self.errorNumber = errorNumber
        self.greatestTransfer = greatestTransfer
    }

    /// How often each kind of call was made.
    package func count(_ call: Call) -> Int {
        state.withLock { $0.counts[call.rawValue] }
    }

    /// Descriptors the server has opened and not closed.
    package var openDescriptors: Int {
        state.withLock { $0.openDescriptors }
    }

    /// The server has opened (or taken over) a descriptor, or closed one.
    func changeOpenDescriptors(by change: Int) {
        state.withLock { $0.openDescriptors += change }
    }

    /// The error to report instead of calling; nil to call.
    func next(_ made: Call) -> Int32? {
        let number = state.withLock { state in
            state.counts[made.rawValue] += 1
            return state.counts[made.rawValue]
        }
        return made == call && numbers.contains(number) ? errorNumber : nil
    }
}
