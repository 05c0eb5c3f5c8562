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

    /// The path as it was written.
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
