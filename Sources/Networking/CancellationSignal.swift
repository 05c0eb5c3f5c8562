internal import CPlatform
internal import Synchronization

/// A switch that is thrown once, from any thread, and that a waiting thread sees at once through its descriptor.
final class CancellationSignal: Sendable {
    private let event: Int32
    private let isThrown = Atomic<Bool>(false)

    init() {
        event = platform_event_descriptor()
    }

    deinit {
        if event >= 0 { _ = platform_close(event) }
    }

    /// Readable from the moment the switch is thrown; nil when the system had no descriptor left, so that only
    /// ``isCancelled`` tells.
    var descriptor: Int32? { event >= 0 ? event : nil }

    var isCancelled: Bool { isThrown.load(ordering: .acquiring) }

    func cancel() {
        isThrown.store(true, ordering: .releasing)
        if event >= 0 { _ = platform_event_signal(event) }
    }
}
