internal import FoundationEssentials
package import Testing

/// One raw request of the shared library of HTTP cases (see its README for the meaning of each field).
package struct HTTPCase: Decodable, Sendable, CustomTestStringConvertible {
    package var name: String
    package var raw: String
    package var expect: String
    package var profile: String
    package var responses: Int
    package var closes: Bool?
    package var status: Int?
    package var reason: String?
    package var steps: [String]?
    package var sameBytesAs: String?

    private enum CodingKeys: String, CodingKey {
        case name, raw, expect, profile, responses, closes, status, reason, steps
        case sameBytesAs = "same_bytes_as"
    }

    /// The bytes to send: one for each character.
    package var bytes: [UInt8] { raw.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } }

    package var testDescription: String { name }
}

/// The library's folder beside the project. Its suites are skipped if the folder is absent.
package enum HTTPCases {
    package static let reasonForSkipping: Comment = "../shared/http-cases is not there"
    /// The 12 sources, one file each.
    package static let sources = [
        "go-net-http", "gunicorn", "h11", "h1spec-dropseed", "h1spec-uws", "haproxy-regtests", "httparse", "hyper",
        "lighttpd", "llhttp", "nginx-tests", "picohttpparser",
    ]

    private static var folder: String { ProjectFiles.path("../shared/http-cases") }

    /// True if the folder exists.
    package static var arePresent: Bool {
        FileManager.default.fileExists(atPath: folder + "/README.md")
    }

    /// The cases of one source, repeats left out.
    package static func load(_ source: String) throws -> [HTTPCase] {
        try loadWithRepeats(source).filter { $0.sameBytesAs == nil }
    }

    /// The cases of one source, including those that repeat the bytes of another source.
    package static func loadWithRepeats(_ source: String) throws -> [HTTPCase] {
        guard let data = FileManager.default.contents(atPath: folder + "/" + source + ".json") else { return [] }
        return try JSONDecoder().decode([HTTPCase].self, from: data)
    }

    /// Every case, repeats left out.
    package static func loadAll() throws -> [HTTPCase] {
        try sources.flatMap(load)
    }
}
