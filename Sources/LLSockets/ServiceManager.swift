internal import CLLSystem

/// The service manager that started this process (systemd, or what speaks its protocol): it is told when the service is
/// ready, reloads and stops. The protocol is a datagram of `NAME=VALUE` lines to the socket in `NOTIFY_SOCKET`
/// (sd_notify(3)).
package struct ServiceManager: Sendable {
    package enum State: Sendable, Equatable {
        /// The service serves; also at the end of a reload.
        case ready
        /// The configuration is being read again.
        case reloading
        /// The service has begun to stop.
        case stopping
    }

    private let socketName: [UInt8]

    /// - Parameter notifySocket: the value of `NOTIFY_SOCKET`: an absolute path, or an abstract name after `@`. Nil for
    ///   anything else: there is nobody to tell.
    package init?(notifySocket: String?) {
        guard let notifySocket, notifySocket.utf8.count > 1, notifySocket.first == "/" || notifySocket.first == "@"
        else { return nil }
        socketName = Array(notifySocket.utf8)
    }

    /// Tells the state, with a line for people.
    /// - Parameter time: how long the step may take, where that may be more than the manager allows.
    /// - Throws: Where the manager does not listen; the service goes on.
    package func notify(_ state: State, status: String, within time: Duration? = nil) throws(SocketError) {
        var text: String
        switch state {
        case .ready: text = "READY=1"
        case .reloading:
            // The manager tells this reload from an older one by the time (systemd.service(5), Type=notify-reload).
            text = "RELOADING=1\nMONOTONIC_USEC=\(MonotonicClock.now().nanoseconds / 1_000)"
        case .stopping: text = "STOPPING=1"
        }
        if let time { text += "\nEXTEND_TIMEOUT_USEC=\(time.components.seconds * 1_000_000)" }
        // A line feed would begin another assignment.
        text += "\nSTATUS=" + String(status.map { $0.isNewline ? " " : $0 })
        let bytes = Array(text.utf8)
        // Both arrays are read up to their own counts.
        let result = unsafe socketName.withUnsafeBytes { name in
            unsafe bytes.withUnsafeBytes { content in
                unsafe platform_send_datagram(
                    name.baseAddress?.assumingMemoryBound(to: CChar.self),
                    name.count,
                    content.baseAddress,
                    content.count
                )
            }
        }
        if result < 0 { throw SocketError(.send, errorNumber: -result) }
    }
}
