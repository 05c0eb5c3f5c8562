internal import LLHTTP
internal import LLStores
internal import LimitedLogin

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

    /// Reads a text; an error becomes a sentence that quotes it.
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
    ) -> @Sendable (String) throws(SettingFault) -> String {
        { text throws(SettingFault) in
            do throws(InvalidConfiguration) { try check(text) } catch { throw SettingFault("\(error)") }
            return text
        }
    }

    /// Refuses each text without a value, in a sentence that quotes it.
    private static func reader<Value>(
        _ value: @escaping @Sendable (String) -> Value?,
        _ fault: String
    ) -> @Sendable (String) throws(SettingFault) -> Value {
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
