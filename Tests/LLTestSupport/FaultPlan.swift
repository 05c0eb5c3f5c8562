internal import CLLTestProcess

/// Makes chosen system calls of a server fail, for tests of its error handling. It counts the calls of the server's
/// workers, and the descriptors that the server has opened.
@safe package final class FaultPlan: Sendable {
    package enum Call: UInt32, CaseIterable, Sendable {
        case accept, receive, send, shutdown, createPoll, control, wait, createEventDescriptor
    }

    /// The plan in C is never freed and changes by atomic operations alone.
    nonisolated(unsafe) private let plan: OpaquePointer

    /// The calls of kind `call` numbered `numbers` (from 1) fail with `errorNumber`.
    /// - Parameter greatestTransfer: The greatest number of bytes that one send takes.
    package init(_ call: Call, _ numbers: Range<Int>, errorNumber: Int32, greatestTransfer: Int = .max) {
        let call = fault_call(call.rawValue)
        let (first, end) = (numbers.lowerBound, numbers.upperBound)
        unsafe plan = fault_plan_make(call, first, end, errorNumber, greatestTransfer)
    }

    /// From now on no call fails.
    package func end() { unsafe fault_plan_end(plan) }

    package func count(_ call: Call) -> Int { unsafe fault_plan_count(plan, fault_call(call.rawValue)) }

    /// Descriptors the server has opened and not closed.
    package var openDescriptors: Int { unsafe fault_plan_open_descriptors(plan) }

    /// The descriptors that `body` opens on this thread belong to the plan, and those accepted from them.
    package func follow<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) {
        unsafe fault_plan_use(plan)
        defer { fault_plan_use(nil) }
        try body()
    }
}

/// Runs `body` while OpenSSL prepares no key on this thread.
package func withoutKeyPreparation<Result>(_ body: () -> Result) -> Result {
    openssl_fails(true)
    defer { openssl_fails(false) }
    return body()
}
