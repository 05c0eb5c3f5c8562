internal import CLLSystem

/// The service manager that started this process (systemd, or a program with the same protocol). It is told when the
/// service is ready, reloads and stops. Each message is a datagram of `NAME=VALUE` lines to the socket in
/// `NOTIFY_SOCKET` (sd_notify(3)).
package struct ServiceManager: Sendable {
    package enum State: String, Sendable {
        case ready = "READY=1"
        case reloading = "RELOADING=1"
        case stopping = "STOPPING=1"
        /// Every thread makes progress: the manager's watchdog begins its time anew.
        case alive = "WATCHDOG=1"
    }

    private let socketName: String

    /// - Parameter notifySocket: The value of `NOTIFY_SOCKET`: an absolute path, or an abstract name after `@`. Any
    ///   other value gives nil: there is no manager to notify.
    package init?(notifySocket: String?) {
        guard let notifySocket, notifySocket.utf8.count > 1, notifySocket.first == "/" || notifySocket.first == "@"
        else { return nil }
        socketName = notifySocket
    }

    /// The time between two signs of life that the manager wants, half of `WATCHDOG_USEC`; nil if it wants none of this
    /// process (sd_watchdog_enabled(3)).
    package static func pulse(_ environment: [String: String]) -> Duration? {
        guard let time = environment["WATCHDOG_USEC"].flatMap({ Int64($0) }), time > 1,
            environment["WATCHDOG_PID"].map({ $0 == "\(getpid())" }) ?? true
        else { return nil }
        return .microseconds(time / 2)
    }

    /// - Parameters:
    ///   - status: A line for people.
    ///   - time: The time that the step may take, if it may exceed the manager's timeout.
    package func notify(_ state: State, status: String? = nil, within time: Duration? = nil) throws(SocketError) {
        var text = state.rawValue
        // The manager uses the time to tell this reload from an older one (systemd.service(5), Type=notify-reload).
        if state == .reloading { text += "\nMONOTONIC_USEC=\(MonotonicClock.now().nanoseconds / 1_000)" }
        if let time { text += "\nEXTEND_TIMEOUT_USEC=\(time.components.seconds * 1_000_000)" }
        // A line feed would begin another assignment.
        if let status { text += "\nSTATUS=" + String(status.map { $0.isNewline ? " " : $0 }) }
        // Both texts are read up to their own counts.
        let result = unsafe platform_send_datagram(socketName, socketName.utf8.count, text, text.utf8.count)
        if result < 0 { throw SocketError(.send, errorNumber: -result) }
    }
}
