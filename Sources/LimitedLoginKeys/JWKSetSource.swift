/// A source of a JWK Set.
///
/// The cache calls one source at a time, on its own queue: a source may suspend, as with an asynchronous HTTP client,
/// or block. The source limits its own time to ten seconds, and the size of its input, and follows no redirect to another
/// host. It does not validate: the cache parses the bytes and decides.
public protocol JWKSetSource: Sendable {
    /// The source's name in logs, metrics and `keys`: a URL or a file's path, never with credentials.
    var name: String { get }

    /// Fetches the set. `validator` comes from an earlier ``JWKSetDocument`` of this source, so that an unchanged set
    /// is not sent again (RFC 9110, 13.1.2). The task of the call is cancelled when the cache stops, and after
    /// ten seconds. A source that ignores that holds the cache up: no other fetch begins.
    func fetch(validator: String?) async throws(JWKSetSourceError) -> JWKSetAnswer

    /// Ends a running fetch and every later one at once, from any thread. The default does nothing, which is enough for
    /// a source with a fetch that ends when its task is cancelled.
    func cancel()
}

extension JWKSetSource {
    /// Does nothing.
    public func cancel() {}
}

/// A source's answer.
@nonexhaustive  // SE-0487
public enum JWKSetAnswer: Sendable, Equatable {
    /// The set is unchanged; its time begins again (RFC 9111, 4.3.4).
    case notModified(JWKSetFreshness)
    /// The bytes of a set, not validated.
    case fetched(JWKSetDocument)
}

/// A fetched JWK Set that is not validated yet.
public struct JWKSetDocument: Sendable, Equatable {
    /// The body as received.
    public var bytes: [UInt8]
    /// The lifetime that the answer states.
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

/// The lifetime of an answer, as its source states it (RFC 9111, 4.2).
public struct JWKSetFreshness: Sendable, Equatable {
    /// The time for which the answer stays fresh, after its `Age` is subtracted; nil if the source names none. Never
    /// negative.
    public let remaining: Duration?

    /// A freshness of this time; none by default.
    public init(remaining: Duration? = nil) { self.remaining = remaining.map { max(.zero, $0) } }
}

/// The reason why a source gave no set.
public struct JWKSetSourceError: Error, Sendable, Equatable, CustomStringConvertible {
    /// One sentence for people; no part of it was sent by the other side.
    public let reason: String
    /// The time for which the source asked not to be called (`Retry-After`, RFC 9110, 10.2.3); nil if it did not ask.
    public let retryAfter: Duration?

    /// An error with its reason.
    public init(_ reason: String, retryAfter: Duration? = nil) {
        self.reason = reason
        self.retryAfter = retryAfter.map { max(.zero, $0) }
    }

    /// The reason.
    public var description: String { reason }
}

/// A JWK Set in a local file, read again at each fetch.
public struct FileJWKSetSource: JWKSetSource {
    /// The file's path.
    public let name: String
    private let byteLimit: Int

    /// A source that reads this file, at most `byteLimit` bytes of it, and never more than 64 KiB.
    public init(path: String, byteLimit: Int = .max) {
        name = path
        self.byteLimit = max(0, byteLimit)
    }

    /// Reads the file.
    public func fetch(validator: String?) throws(JWKSetSourceError) -> JWKSetAnswer {
        guard let contents = try KeySetFile.load(path: name, limit: byteLimit) else {
            throw JWKSetSourceError("there is no such file")
        }
        return .fetched(JWKSetDocument(bytes: contents.bytes))
    }
}
