internal import CLLSystem

package struct SocketError: Error, Equatable, CustomStringConvertible {
    package enum Operation: String, Sendable {
        case createSocket = "create a socket"
        case setOption = "set a socket option"
        case bind = "bind to"
        case listen = "listen on"
        case connect = "connect to"
        case receive = "receive from"
        case send = "send to"
        case createPoll = "create an epoll set"
        case controlPoll = "change an epoll set"
        case createEventDescriptor = "create an event descriptor"
        case readAddress = "read the address of"
        case setMode = "set the permissions of"
        case replace
    }

    package let operation: Operation
    package let errorNumber: Int32
    package let address: ListenAddress?

    package init(_ operation: Operation, errorNumber: Int32, address: ListenAddress? = nil) {
        self.operation = operation
        self.errorNumber = errorNumber
        self.address = address
    }

    /// One sentence, for instance `cannot bind to 127.0.0.1:8080: Address already in use`.
    package var description: String {
        let place = address.map { " \($0)" } ?? ""
        // errno's text would mislead here.
        let isOther = operation == .replace && errorNumber == ENOTSOCK
        let reason =
            isOther ? "the file there is no socket, so it is left alone" : SystemReason.sentence(for: errorNumber)
        return "cannot \(operation.rawValue)\(place): \(reason)"
    }
}
