package import LLHTTP
internal import LLStores
internal import LimitedLogin

/// The origin of a value. The order of precedence is flags, environment, file, default.
package enum ConfigurationOrigin: Sendable, Equatable {
    case flag(String)
    case environment(String)
    case file(path: String, member: String)

    package var description: String {
        switch self {
        case .flag(let name): "--\(name)"
        case .environment(let name): "environment variable \(name)"
        case .file(let path, let member): "\(path): \(member)"
        }
    }
}

package enum ConfigurationValue: Sendable, Equatable {
    case list([String])
    case text(String)
    case integer(Int)

    var payload: any Sendable {
        switch self {
        case .list(let texts): texts
        case .text(let text): text
        case .integer(let number): number
        }
    }
}

package struct ConfigurationSetting: Sendable, Equatable {
    package let value: ConfigurationValue
    package let origin: ConfigurationOrigin
}

/// The mistakes of a configuration, or of a file that it names. They stop the start.
package struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    package private(set) var sentences: [String] = []
    /// The settings at fault, or probably meant.
    private var names: Set<String> = []

    init() {}

    package init(place: String, reason: String) { add(place, reason, nil) }

    mutating func add(_ place: String, _ reason: String, _ row: SettingRow?) {
        sentences.append("\(place): \(reason)")
        if let row { names.insert(row.name) }
    }

    /// Adds a mistake, unless it only follows from another one of the same settings.
    mutating func addNew(_ place: String, _ reason: String, _ row: SettingRow, beside other: SettingRow? = nil) {
        guard names.isDisjoint(with: [row, other].compactMap(\.?.name)) else { return }
        add(place, reason, row)
    }

    package init(_ path: String, _ failure: FileContents.Failure) {
        guard Self.isPath(path) else {
            self.init(
                place: "the value",
                reason: "it names no file; it is not shown, because it may be the secret itself: write that into a "
                    + "file of mode 0600, and name the file"
            )
            return
        }
        self.init(place: path, reason: "the file cannot be read: \(failure.reason)")
    }

    /// True if a text is certainly a path and no secret. Base64 and hexadecimal digits are none.
    private static func isPath(_ text: String) -> Bool {
        guard text.utf8.count <= 1_024, !text.hasSuffix("="), !text.contains(where: \.isWhitespace) else {
            return false
        }
        if ["/", "./", "../"].contains(where: text.hasPrefix) { return true }
        return text.contains { "/.".contains($0) } || !text.contains(where: \.isNumber) && text.utf8.count < 32
    }

    package var description: String { sentences.joined(separator: "; ") }
}

/// A line of a file named by a setting, with a secret or a client.
package struct FileLine {
    let text: ArraySlice<UInt8>
    /// The file and the line's number. Errors name it and never quote the line.
    let place: String

    /// The words between white space; none for a comment, which may follow white space here.
    var words: [ArraySlice<UInt8>] {
        let words = text.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
        return words.first?.first == UInt8(ascii: "#") ? [] : words
    }

    static func all(of text: [UInt8], place: String) -> [FileLine] {
        let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return lines.enumerated().compactMap { index, line in
            // Editors of other systems end lines with a carriage return.
            let line = FileLine(text: line.last == 0x0D ? line.dropLast() : line, place: "\(place): line \(index + 1)")
            return line.text.isEmpty || line.text.first == UInt8(ascii: "#") ? nil : line
        }
    }

    /// The one or two different secrets of a file, each on its own line.
    static func secrets<Secret: Equatable>(
        of text: [UInt8],
        place: String,
        none: String,
        _ read: (FileLine) throws(ConfigurationError) -> Secret
    ) throws(ConfigurationError) -> (Secret, Secret?) {
        var secrets: [Secret] = []
        for line in all(of: text, place: place) {
            guard secrets.count < 2 else { throw line.error("there are more than two secrets") }
            let secret = try read(line)
            guard secrets.first != secret else { throw line.error("the same secret stands in the file twice") }
            secrets.append(secret)
        }
        guard let first = secrets.first else { throw ConfigurationError(place: place, reason: none) }
        return (first, secrets.count > 1 ? secrets[1] : nil)
    }

    package static func text(ofFile path: String, limit: Int) throws(ConfigurationError) -> [UInt8] {
        let text: [UInt8]
        do throws(FileContents.Failure) {
            text = try FileContents.read(path: path, limit: limit)
        } catch {
            throw ConfigurationError(path, error)
        }
        // Editors of other systems write a byte order mark, which would become part of the first word.
        guard !text.starts(with: [0xEF, 0xBB, 0xBF]), !text.starts(with: [0xFF, 0xFE]),
            !text.starts(with: [0xFE, 0xFF])
        else {
            throw ConfigurationError(
                place: path,
                reason: "the file begins with a byte order mark (BOM): save it as UTF-8 without one"
            )
        }
        return text
    }

    func error(_ reason: String) -> ConfigurationError { ConfigurationError(place: place, reason: reason) }
}

/// The grammars of ``Settings``: each reads one text.
enum Read {
    static func appID(_ text: String) throws(SettingFault) -> String {
        guard text.utf8.count <= 64, VerificationPolicy.isAppID(text) else {
            throw SettingFault(text, "is no app id; Facebook's are decimal numbers")
        }
        return text
    }

    static func url(_ text: String) throws(SettingFault) -> HTTPURL {
        try usable(text) { try HTTPURL(parsing: text) }
    }

    /// Reads a value; an error becomes a sentence that quotes the text.
    private static func usable<Value>(_ text: String, _ read: () throws -> Value) throws(SettingFault) -> Value {
        do { return try read() } catch { throw SettingFault(text, "cannot be used: \(error)") }
    }

    static func statusURL(_ text: String) throws(SettingFault) -> HTTPURL {
        let url = try url(text)
        guard !url.target.utf8.contains(UInt8(ascii: "?")) else {
            throw SettingFault("it must not have a query: the code becomes one")
        }
        return url
    }

    static func urlText(_ text: String) throws(SettingFault) -> String {
        _ = try url(text)
        return text
    }

    static func listenAddress(_ text: String) throws(SettingFault) -> ListenAddress {
        guard text.hasPrefix(ListenAddress.unixPrefix) else { return .network(try address(text)) }
        let path = String(text.dropFirst(ListenAddress.unixPrefix.count))
        return .unix(try usable(text) { try UnixSocketPath(path) })
    }

    static func adminAddress(_ text: String) throws(SettingFault) -> SocketAddress {
        guard !text.hasPrefix(ListenAddress.unixPrefix) else {
            throw SettingFault(
                "the administrative listener takes an address and port alone: probes and Prometheus ask it"
            )
        }
        return try address(text)
    }

    static let socketMode =
        reader({ UnixSocketMode($0) }, "is no permissions of a socket: octal digits are needed, from 0600 to 0777")
    static let addressPrefix =
        reader({ AddressPrefix($0) }, "is no address and no CIDR prefix, such as 10.0.0.0/8 or fd00::/8")
    static let origin =
        reader({ GatewayOrigin($0) }, "is no scheme and host alone, such as https://api.example.com")
    private static let address =
        reader({ SocketAddress($0) }, "is no numeric address and port, such as 127.0.0.1:8080 or [::1]:8080")
    static let version = reader(
        { GraphConfiguration.isVersion($0) ? $0 : nil },
        "is no version of the Graph API, such as \(GraphConfiguration.standardVersion)"
    )
    static let tokenClaim = reader(
        TokenIssuer.Claim.init(rawValue:),
        "is none of \(TokenIssuer.Claim.allCases.map(\.rawValue).joined(separator: ", "))"
    )

    // The library's own rules apply, which judge a whole policy. Any values will do for the others.
    static let issuer = library { text throws(InvalidConfiguration) in
        _ = try VerificationPolicy(appIDs: ["0"], issuers: [text])
    }
    static let tokenIssuer = library { text throws(InvalidConfiguration) in _ = try TokenIssuerPolicy(issuer: text) }
    static let audience = library { text throws(InvalidConfiguration) in
        _ = try TokenIssuerPolicy(issuer: "https://a", audiences: [text])
    }
    static let extraClaims = library { text throws(InvalidConfiguration) in
        _ = try TokenIssuerPolicy(issuer: "https://a", extraClaims: text)
    }
    static let scope = library { text throws(InvalidConfiguration) in
        _ = try TokenIssuerPolicy(issuer: "https://a", scope: text)
    }

    /// Refuses each text that the library refuses, in its words.
    private static func library(
        _ check: @escaping @Sendable (String) throws(InvalidConfiguration) -> Void
    ) -> SettingReader<String> {
        { text throws(SettingFault) in
            do throws(InvalidConfiguration) { try check(text) } catch { throw SettingFault("\(error)") }
            return text
        }
    }

    /// Refuses each text without a value, in a sentence that quotes it.
    private static func reader<Value>(
        _ value: @escaping @Sendable (String) -> Value?,
        _ fault: String
    ) -> SettingReader<Value> {
        { text throws(SettingFault) in
            guard let value = value(text) else { throw SettingFault(text, fault) }
            return value
        }
    }

    /// Nil for the store in memory. No message repeats the value: it may hold a password.
    static func storeURL(_ text: String) throws(SettingFault) -> ReplayStoreURL? {
        if text == "memory" { return nil }
        do throws(ReplayStoreURL.ParsingError) {
            return try ReplayStoreURL(parsing: text)
        } catch {
            throw SettingFault("the value cannot be used: \(error)")
        }
    }

    static func shownStore(_ text: String) -> String {
        guard let url = try? ReplayStoreURL(parsing: text) else { return text }
        guard url.password == nil else { return "\(url.shown) with a password" }
        return url.user.isEmpty ? url.shown : "\(url.shown) with a user"
    }

    static func graphAddress(_ text: String) throws(SettingFault) -> String {
        _ = try url(text)
        guard !text.contains("?") else { throw SettingFault(text, "cannot be used: it must not have a query") }
        // Graph's own URLs have the version there, and every call would contain it twice.
        if let last = text.split(separator: "/").last, GraphConfiguration.isVersion(String(last)) {
            throw SettingFault(text, "ends with a version: that is graph_version")
        }
        return text
    }
}
