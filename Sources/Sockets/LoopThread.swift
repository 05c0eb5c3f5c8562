internal import CSystem

/// A thread of its own for an event loop.
///
/// Not a dispatch queue: a block that never ends keeps libdispatch's monitor of its thread pool awake once a second,
/// where an idle server shall not wake at all.
package enum LoopThread {
    private final class Body {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) {
            self.run = run
        }
    }

    /// Starts a thread named `name` (at most 15 bytes are kept) that runs `body` and ends.
    package static func start(_ name: String, _ body: @escaping @Sendable () -> Void) throws(SocketError) {
        // The thread takes over the reference it is handed, so the body lives until it has run.
        let context = unsafe Unmanaged.passRetained(Body(body))
        let result = unsafe String(name.prefix(15)).withCString { name in
            unsafe platform_start_thread(
                { context in
                    guard let context = unsafe context else { return }
                    unsafe Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
                },
                context.toOpaque(),
                name
            )
        }
        if result < 0 {
            unsafe context.release()
            throw SocketError(.startThread, errorNumber: -result)
        }
    }
}
