internal import FoundationEssentials
internal import Glibc
package import LLHTTP

/// A temporary folder, removed with this object. Its path is short enough for a socket's path.
package final class ShortFolder: Sendable {
    package let path: String

    package init() throws {
        var template = Array("/tmp/ll-XXXXXX".utf8CString)
        // The template is an array of its own and ends in NUL; only its last six letters are changed.
        guard unsafe mkdtemp(&template) != nil else { throw TestSupportError("mkdtemp") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The path of a socket in the folder.
    package func socketPath(_ name: String = "http.sock") throws -> UnixSocketPath {
        try UnixSocketPath("\(path)/\(name)")
    }

    deinit { remove() }

    /// Removes the folder with its files, for a value that lives to the end of the process.
    func remove() { try? FileManager.default.removeItem(atPath: path) }
}

/// The project's own files, found relative to this source file.
package enum ProjectFiles {
    package static let root: String = {
        var url = URL(filePath: #filePath)
        for _ in 0..<3 { url.deleteLastPathComponent() }
        return url.path(percentEncoded: false)
    }()

    package static func path(_ relative: String) -> String { root + (root.hasSuffix("/") ? "" : "/") + relative }

    package static func text(_ relative: String) throws -> String {
        try String(contentsOf: URL(filePath: path(relative)), encoding: .utf8)
    }
}
