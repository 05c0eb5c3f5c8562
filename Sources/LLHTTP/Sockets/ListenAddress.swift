package enum ListenAddress: Hashable, Sendable, CustomStringConvertible {
    case network(SocketAddress)
    case unix(UnixSocketPath)

    package static let unixPrefix = "unix:"

    package static func loopback(port: UInt16) -> ListenAddress { .network(.loopback(port: port)) }

    package var network: SocketAddress? {
        switch self {
        case .network(let address): address
        case .unix: nil
        }
    }

    /// The address as system calls take it: the bytes of the address or the path, and the port; -1 for a path.
    var system: (bytes: [UInt8], port: Int32) {
        switch self {
        case .network(let address): (address.bytes, Int32(address.port))
        case .unix(let path): (Array(path.description.utf8), -1)
        }
    }

    /// `127.0.0.1:8080`, `[::1]:8080` or `unix:/run/limited-login/http.sock`.
    package var description: String {
        switch self {
        case .network(let address): address.description
        case .unix(let path): Self.unixPrefix + path.description
        }
    }
}

package struct UnixSocketPath: Hashable, Sendable, CustomStringConvertible {
    package struct ParsingError: Error, Equatable, CustomStringConvertible {
        package let description: String
    }

    /// The greatest length of a path: the system's `sun_path` without its final NUL.
    package static let greatestByteCount = 107

    package let description: String

    /// - Throws: An error if the path is relative (it would depend on the working directory), or if the system cannot
    ///   hold it.
    package init(_ text: String) throws(ParsingError) {
        func fault(_ what: String) -> ParsingError { ParsingError(description: "the path of a socket \(what)") }
        let (count, most) = (text.utf8.count, Self.greatestByteCount)
        guard text.utf8.first == UInt8(ascii: "/") else { throw fault("must begin with '/'") }
        guard !text.utf8.contains(0) else { throw fault("holds no NUL byte") }
        guard count <= most else { throw fault("has at most \(most) bytes, and this one \(count)") }
        description = text
    }
}

/// The permissions of a socket's file: a client needs the right to write to it.
package struct UnixSocketMode: Hashable, Sendable, CustomStringConvertible {
    /// `0660`: the service's user and group.
    package static let standard = UnixSocketMode(bits: 0o660)

    let bits: UInt32

    private init(bits: UInt32) { self.bits = bits }

    /// Reads three or four octal digits; nil for any other text, and if the owner could not read and write.
    package init?(_ text: String) {
        guard (3...4).contains(text.utf8.count), text.first != "+", let bits = UInt32(text, radix: 8),
            (0o600...0o777).contains(bits)
        else { return nil }
        self.bits = bits
    }

    /// True if every user of the machine may connect: write permission is enough (unix(7)).
    package var isForEverybody: Bool { bits & 0o002 != 0 }

    package var description: String { "0" + String(bits, radix: 8) }
}
