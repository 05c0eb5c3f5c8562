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

/// Any JSON value of a vector.
indirect enum JSONValue: Codable {
    case null, bool(Bool), integer(Int64), number(Double), string(String), array([JSONValue]), object(
        [String: JSONValue]
    )

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        func decoded<Value: Decodable>(_ type: Value.Type) -> Value? { try? value.decode(type) }
        if value.decodeNil() {
            self = .null
        } else if let bool = decoded(Bool.self) {
            self = .bool(bool)
        } else if let integer = decoded(Int64.self) {
            self = .integer(integer)
        } else if let number = decoded(Double.self) {
            self = .number(number)
        } else if let string = decoded(String.self) {
            self = .string(string)
        } else if let array = decoded([JSONValue].self) {
            self = .array(array)
        } else {
            self = .object(try value.decode([String: JSONValue].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let values): try container.encode(values)
        case .object(let members): try container.encode(members)
        }
    }
}
