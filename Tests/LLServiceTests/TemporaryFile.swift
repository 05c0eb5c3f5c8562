import FoundationEssentials

/// A file that is removed with this object.
final class TemporaryFile {
    let path: String

    init(contents: String) throws {
        path = FileManager.default.temporaryDirectory.path + "/limited-login-\(UUID().uuidString).json"
        try Data(contents.utf8).write(to: URL(filePath: path))
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}
