internal import FoundationEssentials

/// The project's own files, found relative to this source file.
package enum ProjectFiles {
    /// The project's root folder.
    package static let root: String = {
        var url = URL(filePath: #filePath)
        for _ in 0..<3 { url.deleteLastPathComponent() }
        return url.path(percentEncoded: false)
    }()

    /// The path of a file, relative to the root.
    package static func path(_ relative: String) -> String { root + (root.hasSuffix("/") ? "" : "/") + relative }

    /// The text of a file.
    package static func text(_ relative: String) throws -> String {
        try String(contentsOf: URL(filePath: path(relative)), encoding: .utf8)
    }
}
