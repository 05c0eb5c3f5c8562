internal import Sockets

/// A listening socket as one worker has it.
struct Listener: Sendable {
    /// The worker's own, to be closed by it.
    let descriptor: Int32
    /// The file of a Unix socket, whose queue all workers take connections from; nil where the worker has a queue of its
    /// own (a port shared by `SO_REUSEPORT`).
    let file: UnixSocketFile?

    var isShared: Bool { file != nil }

    /// Closes it. The file goes first: while anybody listens, no other process takes its path (see ``UnixListener``).
    func close(_ system: SystemCalls) {
        file?.remove()
        system.close(descriptor)
    }
}
