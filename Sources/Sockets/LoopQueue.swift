internal import CSystemCalls
internal import Dispatch

/// Runs loops that end with what they serve, each on a serial dispatch queue of its own.
///
/// Such a queue takes a thread for the time of its block and watches nothing. The global pool would: one use of it keeps
/// libdispatch's monitor awake once a second for ever, where an idle server shall not wake at all.
package enum LoopQueue {
    /// Runs `body` on a queue of its own; its thread is named `name` meanwhile (at most 15 bytes are kept).
    package static func start(_ name: String, _ body: @escaping @Sendable () -> Void) {
        DispatchQueue(label: name).async {
            unsafe String(name.prefix(15)).withCString { unsafe platform_name_thread($0) }
            body()
        }
    }
}
