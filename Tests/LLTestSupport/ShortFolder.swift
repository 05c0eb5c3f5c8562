internal import Glibc
package import LLSockets

/// A folder that lasts as long as the value; its path leaves room for a socket's.
package final class ShortFolder: Sendable {
    package let path: String

    package init() throws {
        var template = Array("/tmp/ll-XXXXXX".utf8CString)
        // The template is an array of its own that ends in NUL; only its last six letters are changed.
        let isMade = unsafe template.withUnsafeMutableBufferPointer { buffer in
            guard let start = buffer.baseAddress else { return false }
            return unsafe mkdtemp(start) != nil
        }
        guard isMade else { throw TestSupportError("mkdtemp") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Where a socket may be.
    package func socketPath(_ name: String = "http.sock") throws -> UnixSocketPath {
        try UnixSocketPath("\(path)/\(name)")
    }

    package func socketAddress(_ name: String = "http.sock") throws -> ListenAddress {
        .unix(try socketPath(name))
    }

    deinit {
        for name in Self.names(in: path) {
            unsafe unlink("\(path)/\(name)")
        }
        unsafe rmdir(path)
    }

    /// The names of the files in a folder.
    private static func names(in path: String) -> [String] {
        guard let directory = unsafe opendir(path) else { return [] }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        while let entry = unsafe readdir(directory) {
            // The name ends in NUL within the entry (readdir(3)), which is valid until the next call.
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe String(cString: UnsafeRawPointer(pointer).assumingMemoryBound(to: CChar.self))
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
