internal import FoundationEssentials
internal import OpenSSL

/// The files that a demonstration's service is configured with: they are needed while it starts, and gone after.
struct DemonstrationFiles {
    /// The key of the demonstration's caller. It is no secret, and nothing but a demonstration takes it.
    static let clientKey = "demo"
    /// The secret of the demonstration's app, made anew each time.
    let appSecret: String
    let clientKeys: String
    let appSecrets: String
    private let folder: URL

    init(appID: String) throws {
        // A folder of its own, which nobody else may look into.
        folder = FileManager.default.temporaryDirectory.appending(path: "limited-login-demo-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: folder,
            withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700]
        )
        appSecret = try Self.hexadecimal(byteCount: 16)
        let digest = try SHA256.digest(of: Array(Self.clientKey.utf8).span).hexadecimal
        clientKeys = try Self.write("demo \(digest)\n", "client-keys", in: folder)
        appSecrets = try Self.write("\(appID) \(appSecret)\n", "app-secrets", in: folder)
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }

    private static func hexadecimal(byteCount: Int) throws -> String {
        try RandomBytes.make(count: byteCount).map { String(Int($0) + 0x100, radix: 16).dropFirst() }.joined()
    }

    private static func write(_ text: String, _ name: String, in folder: URL) throws -> String {
        let file = folder.appending(path: name)
        try Data(text.utf8).write(to: file)
        return file.path
    }
}
