/// A place where a JWK Set can be had.
///
/// A source blocks while it fetches and is called by one thread at a time, never by one that serves requests. It bounds
/// its own time and the size of what it reads, and judges nothing: the cache parses the bytes and decides.
public protocol JWKSetSource: Sendable {
    /// What logs, metrics and `keys` call it: a URL or a file's path, never with credentials.
    var name: String { get }

    /// Fetches the set; `validator` is what an earlier ``JWKSetDocument`` of this source carried, so that an unchanged
    /// set need not travel (RFC 9110, 13.1.2).
    func fetch(validator: String?) throws(JWKSetSourceError) -> JWKSetAnswer

    /// Ends a fetch under way and every later one at once, from any thread.
    func cancel()
}

/// What a source answered.
public enum JWKSetAnswer: Sendable, Equatable {
    /// The set is as it was; its time begins anew (RFC 9111, 4.3.4).
    case notModified(JWKSetFreshness)
    /// The bytes of a set, unjudged.
    case fetched(JWKSetDocument)
}

/// A fetched JWK Set before anything about it was judged.
public struct JWKSetDocument: Sendable, Equatable {
    /// The body as received.
    public var bytes: [UInt8]
    /// What the answer said about its life.
    public var freshness: JWKSetFreshness
    /// The entity tag to send with the next request, if the source gave one.
    public var validator: String?

    /// A document of these parts.
    public init(bytes: [UInt8], freshness: JWKSetFreshness = .init(), validator: String? = nil) {
        self.bytes = bytes
        self.freshness = freshness
        self.validator = validator
    }
}

/// What a source says about the life of its answer (RFC 9111, 4.2).
public struct JWKSetFreshness: Sendable, Equatable {
    /// Seconds the answer stays fresh, its `Age` already taken off; nil when the source names none. Never negative.
    public var remainingSeconds: Int?

    /// Freshness of this many seconds, none named by default.
    public init(remainingSeconds: Int? = nil) { self.remainingSeconds = remainingSeconds.map { max(0, $0) } }
}

/// Why a source gave no set.
public struct JWKSetSourceError: Error, Sendable, Equatable, CustomStringConvertible {
    /// One sentence for people; nothing in it was sent by the other side.
    public let reason: String
    /// Seconds the source asked to be left alone for (`Retry-After`, RFC 9110, 10.2.3); nil when it did not.
    public let retryAfterSeconds: Int?

    /// An error with its reason.
    public init(_ reason: String, retryAfterSeconds: Int? = nil) {
        self.reason = reason
        self.retryAfterSeconds = retryAfterSeconds.map { max(0, $0) }
    }

    /// The reason.
    public var description: String { reason }
}

/// A JWK Set in a local file, read again at each fetch.
public struct FileJWKSetSource: JWKSetSource {
    /// The file's path.
    public let name: String
    private let byteLimit: Int

    /// A source that reads this file, at most `byteLimit` bytes of it, and 64 KiB whatever that says.
    public init(path: String, byteLimit: Int = JWKSetCacheLimits().keySetBytes) {
        name = path
        self.byteLimit = min(max(0, byteLimit), JWKSetCacheLimits.greatestKeySetBytes)
    }

    /// Reads the file; `notModified` when it is the very file the validator was made from.
    public func fetch(validator: String?) throws(JWKSetSourceError) -> JWKSetAnswer {
        guard let contents = try KeySetFile.read(path: name, byteLimit: byteLimit) else {
            throw JWKSetSourceError("there is no such file")
        }
        if contents.version == validator { return .notModified(JWKSetFreshness()) }
        return .fetched(JWKSetDocument(bytes: contents.bytes, validator: contents.version))
    }

    /// A file is read at once: there is nothing to end.
    public func cancel() {}
}
