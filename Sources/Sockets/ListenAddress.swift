/// What a server listens on.
package enum ListenAddress: Hashable, Sendable, CustomStringConvertible {
    case network(SocketAddress)
    case unix(UnixSocketPath)

    /// What a text that means a Unix socket begins with.
    package static let unixPrefix = "unix:"

    /// 127.0.0.1 with a port.
    package static func loopback(port: UInt16) -> ListenAddress { .network(.loopback(port: port)) }

    /// The address and port; nil for a Unix socket, which has none.
    package var network: SocketAddress? {
        switch self {
        case .network(let address): address
        case .unix: nil
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

/// The path of a Unix domain socket (unix(7)).
package struct UnixSocketPath: Hashable, Sendable, CustomStringConvertible {
    /// Why a text is no such path.
    package enum ParsingError: Error, Equatable, CustomStringConvertible {
        case notAbsolute
        case tooLong(byteCount: Int)
        case holdsNUL

        package var description: String {
            switch self {
            case .notAbsolute: "the path of a socket must begin with '/'"
            case .tooLong(let byteCount):
                "the path of a socket has at most \(UnixSocketPath.greatestByteCount) bytes, and this one \(byteCount)"
            case .holdsNUL: "the path of a socket holds no NUL byte"
            }
        }
    }

    /// What the system's `sun_path` holds besides the NUL at its end.
    package static let greatestByteCount = 107

    package let description: String

    /// - Throws: Where the path is relative (it would depend on the working directory), or the system cannot hold it.
    package init(_ text: String) throws(ParsingError) {
        guard text.utf8.first == UInt8(ascii: "/") else { throw .notAbsolute }
        guard !text.utf8.contains(0) else { throw .holdsNUL }
        guard text.utf8.count <= Self.greatestByteCount else { throw .tooLong(byteCount: text.utf8.count) }
        description = text
    }

    /// The directory that holds the file.
    var directory: String {
        guard let slash = description.utf8.lastIndex(of: UInt8(ascii: "/")), slash > description.startIndex else {
            return "/"
        }
        return String(description[..<slash])
    }
}

/// The permissions of a socket's file: a client needs the right to write to it.
package struct UnixSocketMode: Hashable, Sendable, CustomStringConvertible {
    /// `0660`: the service's user and group.
    package static let standard = UnixSocketMode(bits: 0o660)

    /// `0600` to `0777`.
    let bits: UInt32

    private init(bits: UInt32) { self.bits = bits }

    /// Reads three or four octal digits; nil for anything else, and where the owner could not read and write.
    package init?(_ text: String) {
        let digits = text.utf8
        guard (3...4).contains(digits.count),
            digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "7")).contains($0) })
        else { return nil }
        bits = digits.reduce(0) { $0 * 8 + UInt32($1 - UInt8(ascii: "0")) }
        guard (0o600...0o777).contains(bits) else { return nil }
    }

    /// Four octal digits.
    package var description: String { "0" + String(bits, radix: 8) }
}
