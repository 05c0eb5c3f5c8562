internal import CSystem
internal import Synchronization

/// A switch that is thrown once, from any thread, and that a waiting thread sees at once through its descriptor.
package final class CancellationSignal: Sendable {
    private let event: Int32
    private let isThrown = Atomic<Bool>(false)

    package init() {
        event = platform_event_descriptor()
    }

    deinit {
        if event >= 0 { _ = platform_close(event) }
    }

    /// Readable from the moment the switch is thrown; nil when the system had no descriptor left, so that only
    /// ``isCancelled`` tells.
    package var descriptor: Int32? { event >= 0 ? event : nil }

    package var isCancelled: Bool { isThrown.load(ordering: .acquiring) }

    package func cancel() {
        isThrown.store(true, ordering: .releasing)
        if event >= 0 { _ = platform_event_signal(event) }
    }
}
