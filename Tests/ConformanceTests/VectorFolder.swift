import FoundationEssentials
import LLTestSupport
import Testing

/// Test vectors from other projects. They are in `../shared/vectors` beside the package or in `.build/vectors`, both of
/// which may be absent. `Tests/Scripts/fetch_vectors.py` puts the public ones into `.build/vectors`.
enum VectorFolder {
    private static let roots = [ProjectFiles.path("../shared/vectors"), ProjectFiles.path(".build/vectors")]

    /// Runs a test only if the file that it needs exists.
    static func needs(_ path: String) -> ConditionTrait {
        .enabled(if: find(path) != nil, "\(path) is neither in ../shared/vectors nor in .build/vectors")
    }

    private static func find(_ path: String) -> String? {
        roots.map { "\($0)/\(path)" }.first { FileManager.default.fileExists(atPath: $0) }
    }

    private static func data(_ path: String) throws -> Data {
        guard let file = find(path) else { throw TestSupportError("there is no vector \(path)") }
        return try Data(contentsOf: URL(filePath: file))
    }

    /// The bytes of a file of the folder.
    static func bytes(_ path: String) throws -> [UInt8] { Array(try data(path)) }

    /// A file of the folder, decoded from JSON.
    static func decode<Value: Decodable>(_ type: Value.Type, _ path: String) throws -> Value {
        try JSONDecoder().decode(type, from: data(path))
    }
}
