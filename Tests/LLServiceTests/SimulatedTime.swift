import CLLTestProcess
import LLHTTP

/// The clocks, the random numbers, the connections and the events of a simulation, for the thread that makes it and for
/// those that it starts. One of them runs at a time, so all choices follow from the seed. See CLLTestProcess.h.
@safe final class SimulatedTime: @unchecked Sendable {
    private final class Box<Content> {
        var content: Content
        init(_ content: Content) { self.content = content }
        var pointer: UnsafeMutableRawPointer { unsafe Unmanaged.passUnretained(self).toOpaque() }
        static func at(_ pointer: UnsafeMutableRawPointer?) -> Content? {
            unsafe pointer.map { unsafe Unmanaged<Box>.fromOpaque($0).takeUnretainedValue().content }
        }
    }

    /// Takes the server's end of a connection to a port; false refuses it.
    typealias Listener = (_ port: UInt16, _ descriptor: Int32) -> Bool

    private let world: OpaquePointer
    private let box = Box<Listener> { _, _ in false }
    private var threads: [Int32: Box<() -> Void>] = [:]
    private var events: [(at: UInt64, action: () -> Void)] = []

    init(seed: UInt64) {
        let take: simulated_listener = { unsafe Box<Listener>.at($0)?($1, $2) ?? false }
        unsafe world = simulated_time_begin(seed, take, box.pointer)
    }

    var listener: Listener {
        get { box.content }
        set { box.content = newValue }
    }
    /// Nanoseconds of the monotonic clock.
    var now: UInt64 {
        get { unsafe simulated_time_now(world) }
        set { unsafe simulated_time_set(world, newValue) }
    }
    var instant: MonotonicInstant { MonotonicInstant(nanoseconds: now) }
    var firstEvent: UInt64? { events.first?.at }

    /// Sets the wall clock of this thread: nanoseconds that it is ahead of the monotonic one.
    func setLead(_ lead: Int64) { unsafe simulated_time_set_lead(world, lead) }

    func after(_ nanoseconds: UInt64, _ action: @escaping () -> Void) {
        let at = now + nanoseconds
        events.insert((at, action), at: events.lastIndex { $0.at <= at }.map { $0 + 1 } ?? 0)
    }

    func runEvents() { while firstEvent ?? .max <= now { events.removeFirst().action() } }

    /// Starts a thread, and returns its number when it first waits.
    func start(lead: Int64, _ body: @escaping () -> Void) -> Int32 {
        let box = Box(body)
        let number = unsafe simulated_time_start(world, lead, { unsafe Box<() -> Void>.at($0)?() }, box.pointer)
        threads[number] = box
        return number
    }

    /// Lets the threads run that need not wait; returns the first moment until which one waits.
    func settle() -> UInt64 { unsafe simulated_time_settle(world) }

    /// Ends a thread that does nothing more once its waits are over.
    func kill(_ thread: Int32) {
        unsafe simulated_time_kill(world, thread)
        threads[thread] = nil
    }

    /// This thread returns to the real clocks.
    func end() {
        events = []
        unsafe simulated_time_end(world)
    }
}
