internal import LLBytes
internal import LLHTTP
internal import LLJOSE

/// The callers that may use the service: names, and the SHA-256 of each one's key. The keys themselves are not stored.
///
/// The file has a line for each client: its name, white space, 64 hexadecimal digits. Empty lines and lines that begin
/// with `#` are comments. A name may be on several lines, so that a key can be replaced while both are in use.
package struct ClientKeys: Sendable, Equatable {
    /// Greatest number of lines with a key: each costs every request one comparison.
    private static let countLimit = 1_000
    /// Greatest size of the file, in bytes: enough for that number of lines.
    package static let fileByteLimit = 262_144

    package let names: [String]
    private let entries: [Entry]

    private struct Entry: Sendable, Equatable {
        let client: Int
        let digest: [UInt8]
    }

    package init(parsing text: [UInt8], place: String) throws(ConfigurationError) {
        var names: [String] = []
        var entries: [Entry] = []
        for line in FileLine.all(of: text, place: place) {
            let words = line.words
            if words.isEmpty { continue }
            guard words.count == 2, let name = Self.name(words[0]) else {
                throw line.error(
                    "a client's line is its name, of [A-Za-z0-9._-], and the SHA-256 of its key, as "
                        + "'limited-login client-key new NAME' prints it"
                )
            }
            guard words[1].count == 64, let digest = Hexadecimal.decode(words[1]) else {
                throw line.error(
                    "the key's SHA-256 must be 64 hexadecimal digits, as 'limited-login client-key new NAME' prints it, not the key"
                )
            }
            guard !entries.contains(where: { $0.digest == digest }) else {
                throw line.error("the same key stands in the file twice")
            }
            guard entries.count < Self.countLimit else {
                throw line.error("there are more than \(Self.countLimit) keys")
            }
            let client = names.firstIndex(of: name) ?? names.count
            if client == names.count { names.append(name) }
            entries.append(Entry(client: client, digest: digest))
        }
        guard !entries.isEmpty else {
            throw ConfigurationError(
                place: place,
                reason: "the file has no line of a client, so no client could call; "
                    + "'limited-login client-key new NAME --append FILE' adds one"
            )
        }
        self.names = names
        self.entries = entries
    }

    /// The client that has this key, by its position in `names`. Every entry is compared, each in constant time, so
    /// that the time reveals nothing about the keys.
    package func client(presenting key: Span<UInt8>) -> Int? {
        // No client has a longer one.
        guard (1...512).contains(key.count), let digest = try? SHA256.digest(of: key) else { return nil }
        var found: Int?
        for entry in entries where ConstantTime.areEqual(entry.digest.span, digest.bytes.span) {
            found = entry.client
        }
        return found
    }

    func client(presenting credentials: CallerCredentials, in bytes: Span<UInt8>) -> Int? {
        switch credentials {
        case .key(let range): return client(presenting: bytes.extracting(range))
        case .named(let name, let key):
            guard
                // RFC 6749 section 2.3.1 requires name and key to be form-encoded before base64. Not every client does
                // that, and the names allowed here are the same either way.
                let client = client(presenting: key.span)
                    ?? PercentEncoding.decode(key.span, key.indices, isForm: true)
                    .flatMap({ $0 == key ? nil : client(presenting: $0.span) }),
                Array(names[client].utf8) == name
            else { return nil }
            return client
        }
    }

    /// Makes a key to be shown once, 256 random bits behind a prefix for secret scanners, and its line.
    package static func make(name: String) -> (key: String, line: String)? {
        guard Self.name(ArraySlice(name.utf8)) != nil, let random = try? RandomBytes.make(count: 32) else { return nil }
        let key = "llk_" + Hexadecimal.encode(random)
        guard let digest = try? SHA256.digest(of: Array(key.utf8).span) else { return nil }
        return (key, "\(name) \(digest.hexadecimal)")
    }

    /// The bytes that add a client's line at the end of a file's text; nil if the file has a key of that name.
    package static func addition(
        of line: String,
        name: String,
        to text: [UInt8],
        place: String
    ) throws(ConfigurationError) -> [UInt8]? {
        let known = FileLine.all(of: text, place: place).compactMap(\.words.first)
        guard !known.contains(ArraySlice(name.utf8)) else { return nil }
        let isWhole = text.isEmpty || text.last == UInt8(ascii: "\n")
        let addition = Array("\(isWhole ? "" : "\n")\(line)\n".utf8)
        _ = try ClientKeys(parsing: text + addition, place: place)
        return addition
    }

    private static func name(_ word: ArraySlice<UInt8>) -> String? {
        let bytes = Array(word)
        // It is a label of the metrics.
        guard bytes.count <= 64, RequestIdentifier.isWellFormed(bytes.span, 0..<bytes.count) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The credentials of a caller: `Authorization: Bearer KEY` (RFC 6750 section 2.1), `X-Api-Key: KEY`, or
/// `Authorization: Basic` with its name and key, as OAuth clients send it (RFC 6749 section 2.3.1).
enum CallerCredentials {
    case key(Range<Int>)
    case named(name: [UInt8], key: [UInt8])

    init?(_ head: borrowing RequestHead, bytes: Span<UInt8>) {
        guard Self.count(in: head, bytes) == 1 else { return nil }
        let value = head.value(of: "authorization", in: bytes) ?? 0..<0
        if let key = head.value(of: "x-api-key", in: bytes) ?? Self.rest(of: value, after: "bearer ", bytes) {
            self = .key(key)
        } else if let rest = Self.rest(of: value, after: "basic ", bytes),
            let (name, key) = Self.decodeBasic(bytes, rest)
        {
            self = .named(name: name, key: key)
        } else {
            return nil
        }
    }

    /// Greatest length of the text behind `Basic`, in characters: a name of 64, a key of 512, and their form-encoding.
    private static let basicLimit = 2_048

    /// Name and key of `Authorization: Basic` (RFC 7617 section 2); nil if it is too long, no strict base64, or without
    /// a colon.
    static func decodeBasic(_ bytes: Span<UInt8>, _ range: Range<Int>) -> (name: [UInt8], key: [UInt8])? {
        guard range.count <= basicLimit, let text = Base64.decode(bytes, range),
            let colon = text.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        return (Array(text[..<colon]), Array(text[(colon + 1)...]))
    }

    static func count(in head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Int {
        head.count(of: "authorization", in: bytes) + head.count(of: "x-api-key", in: bytes)
    }

    /// The text behind the scheme, compared without case (RFC 9110 section 11.1); nil for another scheme, or no text.
    static func rest(of value: Range<Int>, after scheme: StaticString, _ bytes: Span<UInt8>) -> Range<Int>? {
        let length = scheme.utf8CodeUnitCount
        guard value.count > length,
            bytes.equalIgnoringCase(value.lowerBound..<value.lowerBound + length, scheme)
        else { return nil }
        var start = value.lowerBound + length
        while start < value.upperBound, bytes[start] == ASCII.space { start += 1 }
        return start < value.upperBound ? start..<value.upperBound : nil
    }
}
