import FoundationEssentials
import LLTestSupport
import Testing

/// One raw request of the shared library of HTTP cases (see its README for the meaning of each field).
struct HTTPCase: Decodable, Sendable, CustomTestStringConvertible {
    let name: String
    let raw: String
    let expect: String
    let profile: String
    let responses: Int
    let sameBytesAs: String?

    private enum CodingKeys: String, CodingKey {
        case name, raw, expect, profile, responses
        case sameBytesAs = "same_bytes_as"
    }

    /// The bytes to send: one for each character.
    var bytes: [UInt8] { raw.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } }

    var testDescription: String { name }
}

/// The library's folder beside the project. Its suites are skipped if the folder is absent.
enum HTTPCases {
    static let reasonForSkipping: Comment = "../shared/http-cases is not there"
    /// The 12 sources, one file each.
    static let sources = [
        "go-net-http", "gunicorn", "h11", "h1spec-dropseed", "h1spec-uws", "haproxy-regtests", "httparse", "hyper",
        "lighttpd", "llhttp", "nginx-tests", "picohttpparser",
    ]

    private static var folder: String { ProjectFiles.path("../shared/http-cases") }

    static var arePresent: Bool { FileManager.default.fileExists(atPath: folder + "/README.md") }

    /// The cases of one source, without those that repeat the bytes of another source.
    static func load(_ source: String) throws -> [HTTPCase] {
        guard let data = FileManager.default.contents(atPath: folder + "/" + source + ".json") else { return [] }
        return try JSONDecoder().decode([HTTPCase].self, from: data).filter { $0.sameBytesAs == nil }
    }
}
