/// A JWK Set in a local file, read again at each fetch.
public struct FileJWKSetSource: JWKSetSource {
    /// The file's path.
    public let path: String
    private let byteLimit: Int

    /// A source that reads this file, at most `byteLimit` bytes of it.
    public init(path: String, byteLimit: Int = JWKSetCacheLimits().keySetBytes) {
        self.path = path
        self.byteLimit = max(0, byteLimit)
    }

    /// The path.
    public var name: String { path }

    /// Reads the file; `notModified` when it is the very file the validator was made from.
    public func fetch(validator: String?) throws(JWKSetSourceError) -> JWKSetAnswer {
        guard let contents = try KeySetFile.read(path: path, byteLimit: byteLimit) else {
            throw JWKSetSourceError("there is no such file")
        }
        if contents.version == validator { return .notModified(JWKSetFreshness()) }
        return .fetched(JWKSetDocument(bytes: contents.bytes, validator: contents.version))
    }

    /// A file is read at once: there is nothing to end.
    public func cancel() {}
}
