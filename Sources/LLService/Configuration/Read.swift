internal import LLGraph
internal import LLHTTPClient
internal import LLSockets
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

    static func issuer(_ text: String) throws(SettingFault) -> String {
        do throws(InvalidConfiguration) {
            // The verifier's own rules apply. They need an app id; any will do.
            _ = try VerificationPolicy(appIDs: ["0"], issuers: [text])
        } catch {
            throw SettingFault("\(error)")
        }
        return text
    }

    static func url(_ text: String) throws(SettingFault) -> HTTPURL {
        do throws(HTTPURL.ParsingError) {
            return try HTTPURL(parsing: text)
        } catch {
            throw SettingFault(text, "cannot be used: \(error.rawValue)")
        }
    }

    static func urlText(_ text: String) throws(SettingFault) -> String {
        _ = try url(text)
        return text
    }

    static func listenAddress(_ text: String) throws(SettingFault) -> ListenAddress {
        guard text.hasPrefix(ListenAddress.unixPrefix) else { return .network(try address(text)) }
        do throws(UnixSocketPath.ParsingError) {
            return .unix(try UnixSocketPath(String(text.dropFirst(ListenAddress.unixPrefix.count))))
        } catch {
            throw SettingFault(text, "cannot be used: \(error)")
        }
    }

    static func adminAddress(_ text: String) throws(SettingFault) -> SocketAddress {
        guard !text.hasPrefix(ListenAddress.unixPrefix) else {
            throw SettingFault(
                "the administrative listener takes an address and port alone: probes and Prometheus ask it"
            )
        }
        return try address(text)
    }

    private static func address(_ text: String) throws(SettingFault) -> SocketAddress {
        guard let address = SocketAddress(text) else {
            throw SettingFault(text, "is no numeric address and port, such as 127.0.0.1:8080 or [::1]:8080")
        }
        return address
    }

    static func socketMode(_ text: String) throws(SettingFault) -> UnixSocketMode {
        guard let mode = UnixSocketMode(text) else {
            throw SettingFault(text, "is no permissions of a socket: octal digits are needed, from 0600 to 0777")
        }
        return mode
    }

    static func addressPrefix(_ text: String) throws(SettingFault) -> AddressPrefix {
        guard let prefix = AddressPrefix(text) else {
            throw SettingFault(text, "is no address and no CIDR prefix, such as 10.0.0.0/8 or fd00::/8")
        }
        return prefix
    }

    static func origin(_ text: String) throws(SettingFault) -> GatewayOrigin {
        guard let origin = GatewayOrigin(text) else {
            throw SettingFault(text, "is no scheme and host alone, such as https://api.example.com")
        }
        return origin
    }

    static func authField(_ text: String) throws(SettingFault) -> AuthField {
        do throws(AuthField.Fault) { return try AuthField(text) } catch { throw SettingFault(text, error.reason) }
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

    /// The store without its user information.
    static func shownStore(_ text: String) -> String {
        guard let url = try? ReplayStoreURL(parsing: text) else { return text }
        guard url.password == nil else { return "\(url.shown) with a password" }
        return url.user.isEmpty ? url.shown : "\(url.shown) with a user"
    }

    static func graphAddress(_ text: String) throws(SettingFault) -> String {
        do throws(GraphConfiguration.Fault) {
            _ = try GraphConfiguration.base(text)
        } catch {
            let reason =
                switch error {
                case .url(let error): error.rawValue
                case .query, .version: "it must not have a query"
                }
            throw SettingFault(text, "cannot be used: \(reason)")
        }
        // Graph's own URLs have the version there, and every call would contain it twice.
        if let last = text.split(separator: "/").last, GraphConfiguration.isVersion(String(last)) {
            throw SettingFault(text, "ends with a version: that is graph_version")
        }
        return text
    }

    static func version(_ text: String) throws(SettingFault) -> String {
        guard GraphConfiguration.isVersion(text) else {
            let example = GraphConfiguration.standardVersion
            throw SettingFault(text, "is no version of the Graph API, such as \(example)")
        }
        return text
    }

    static func tokenClaim(_ text: String) throws(SettingFault) -> TokenIssuer.Claim {
        guard let claim = TokenIssuer.Claim(rawValue: text) else {
            let known = TokenIssuer.Claim.allCases.map(\.rawValue).joined(separator: ", ")
            throw SettingFault(text, "is none of \(known)")
        }
        return claim
    }
}
