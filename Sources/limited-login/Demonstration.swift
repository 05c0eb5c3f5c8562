internal import Bytes
internal import FoundationEssentials
internal import OpenSSL

/// What `demo` prints, and the app it demonstrates with.
enum Demonstration {
    /// The app id of the demonstration's tokens; no real app has it.
    static let appID = "123456789012345"

    /// The commands to paste: what each shows, the path of its token at the stand-in, and what the service answers.
    private static let commands = [
        ("a good login", "/login", "200, the Profile"),
        ("an expired token", "/login/expired", "401 expired"),
        ("a token that somebody changed", "/login/changed", "401 invalid_signature"),
    ]

    /// The whole text. Each command is one line: it has a token minted, and passes it on to the service.
    ///
    /// - Parameters:
    ///   - service: the service's host and port.
    ///   - issuer: the stand-in's.
    static func text(service: String, issuer: String) -> String {
        var lines = [
            "limited-login demo: the service on http://\(service), a stand-in for Facebook on http://\(issuer)",
            "",
            "Open the page:  http://\(issuer)/",
            "",
            "Or paste these into another terminal:",
        ]
        for (title, path, outcome) in commands {
            lines += [
                "",
                "# \(title) -> \(outcome)",
                "curl -s \(issuer)\(path) | curl -s --json @- -H X-Api-Key:\(DemonstrationFiles.clientKey) "
                    + "\(service)/verify",
            ]
        }
        lines += ["", "Control-C stops it."]
        return lines.joined(separator: "\n")
    }
}

/// The files that a demonstration's service is configured with: they are needed while it starts, and gone after.
struct DemonstrationFiles {
    /// The key of the demonstration's caller. It is no secret, and nothing but a demonstration takes it.
    static let clientKey = "demo"
    /// The secret of the demonstration's app, made anew each time.
    let appSecret: String
    let clientKeys: String
    let appSecrets: String
    let webhookSecret: String
    private let folder: URL

    init(appID: String, webhookSecret secret: String) throws {
        // A folder of its own, which only its user may look into.
        let place = FileManager.default.temporaryDirectory
        folder = place.appending(path: "limited-login-demo-\(UUID().uuidString)")
        do {
            try FileManager.default.createDirectory(
                at: folder,
                withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw StartError("\(place.path) cannot be written; set TMPDIR to a folder that you may write to")
        }
        appSecret = Hexadecimal.encode(try RandomBytes.make(count: 16))
        let digest = try SHA256.digest(of: Array(Self.clientKey.utf8).span).hexadecimal
        clientKeys = try Self.write("demo \(digest)\n", "client-keys", in: folder)
        appSecrets = try Self.write("\(appID) \(appSecret)\n", "app-secrets", in: folder)
        webhookSecret = try Self.write("\(secret)\n", "webhook-secret", in: folder)
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }

    private static func write(_ text: String, _ name: String, in folder: URL) throws -> String {
        let file = folder.appending(path: name)
        try Data(text.utf8).write(to: file)
        return file.path
    }
}
