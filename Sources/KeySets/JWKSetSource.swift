internal import HTTPClient

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

extension JWKSetFreshness {
    /// What `Cache-Control` and `Age` say (RFC 9111, 4.2.1 and 4.2.3); `Expires` is not read.
    init(of response: HTTPSResponse) {
        let life = response.value(of: "cache-control").flatMap(Self.lifetime)
        let age = response.value(of: "age").flatMap(DeltaSeconds.parse) ?? 0
        // Both are at least 0, so the difference cannot overflow.
        self.init(remainingSeconds: life.map { $0 - age })
    }

    /// The least `max-age`; 0 for `no-store` and `no-cache`, and for a `max-age` that is no number: an answer whose
    /// freshness cannot be read counts as stale (RFC 9111, 4.2.1).
    private static func lifetime(in text: String) -> Int? {
        var life: Int?
        for directive in directives(in: text) {
            let parts = directive.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = parts.first.map({ trimmed($0).lowercased() }) else { continue }
            if name == "no-store" || name == "no-cache" { life = 0 }
            guard name == "max-age" else { continue }
            // RFC 9111, 5.2: the argument may come as a token or as a quoted string.
            let argument = parts.count == 2 ? trimmed(parts[1]).filter { $0 != "\"" } : ""
            life = min(life ?? .max, DeltaSeconds.parse(argument) ?? 0)
        }
        return life
    }

    /// Splits at commas outside of quoted strings.
    private static func directives(in text: String) -> [Substring] {
        var isQuoted = false
        return text.split { character in
            if character == "\"" { isQuoted.toggle() }
            return character == "," && !isQuoted
        }
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return String(text)
    }
}

/// RFC 9111, 1.2.2: seconds in decimal digits; what is too large counts as very large, never as an error.
enum DeltaSeconds {
    static func parse(_ text: String) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 &- 0x30 < 10 }) else { return nil }
        return Int(text) ?? .max
    }
}

/// RFC 9110, 8.8.3: an entity tag, weak or strong.
enum EntityTag {
    /// The tag if it is one, and short enough to be sent with every request.
    static func validated(_ text: String) -> String? {
        let opaque = text.hasPrefix("W/") ? text.dropFirst(2) : text[...]
        let bytes = Array(opaque.utf8)
        guard (2...256).contains(bytes.count), bytes.first == 0x22, bytes.last == 0x22 else { return nil }
        let isWellFormed = bytes.dropFirst().dropLast().allSatisfy { $0 == 0x21 || $0 >= 0x23 && $0 != 0x7F }
        return isWellFormed ? text : nil
    }
}
