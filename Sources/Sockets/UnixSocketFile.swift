internal import CSystemCalls

/// The file of a Unix socket that this process has bound.
package final class UnixSocketFile: Sendable {
    /// Which file a path names.
    package struct Identity: Equatable {
        let device: UInt64
        let inode: UInt64
        let isSocket: Bool

        /// Nil where there is no file, or none that may be looked at.
        init?(of path: UnixSocketPath) {
            var file = platform_file()
            let result = unsafe path.description.withCString { unsafe platform_file_facts($0, &file) }
            guard result >= 0 else { return nil }
            device = file.device
            inode = file.inode
            isSocket = file.is_socket != 0
        }
    }

    private let path: UnixSocketPath
    private let identity: Identity
    private let isRemoved = Locked(false)

    /// The file `path` names now; nil where there is none.
    package init?(at path: UnixSocketPath) {
        guard let identity = Identity(of: path) else { return nil }
        self.path = path
        self.identity = identity
    }

    /// Removes the file, unless another has its place by now. The first call does it, and the others return when it has
    /// been done. As long as the socket is open the system gives its inode to no other file.
    package func remove() {
        isRemoved.withLock { isRemoved in
            guard !isRemoved else { return }
            isRemoved = true
            guard Identity(of: path) == identity else { return }
            // Where this is not allowed, the next start finds that nobody listens there.
            _ = unsafe path.description.withCString { unsafe platform_unlink($0) }
        }
    }
}
