internal import FoundationEssentials

/// The folder of test vectors made by others, which lies beside the package and may be absent.
package enum VectorFolder {
    /// Why a suite that needs the vectors is skipped.
    package static let absence: String = "the folder ../shared/vectors is not there"

    /// Whether the vectors are there.
    package static let isPresent: Bool = FileManager.default.fileExists(atPath: root + "/README.md")

    private static let root = packageRoot + "/../shared/vectors"

    /// The root of the package, found from this file's place in it.
    package static let packageRoot: String = {
        var parts = #filePath.split(separator: "/", omittingEmptySubsequences: false)
        parts.removeLast(3)
        return parts.joined(separator: "/")
    }()

    /// The bytes of a file of the folder.
    package static func bytes(_ path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: root + "/" + path)))
    }

    /// A file of the folder, decoded from JSON.
    package static func decode<Value: Decodable>(_ type: Value.Type, _ path: String) throws -> Value {
        try JSONDecoder().decode(type, from: Data(contentsOf: URL(filePath: root + "/" + path)))
    }
}
