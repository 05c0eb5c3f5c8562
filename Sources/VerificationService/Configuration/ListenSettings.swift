internal import Networking

extension SettingReader {
    /// Where the service listens; nil where nothing is said.
    func listenAddress() throws(ConfigurationError) -> ListenAddress? {
        guard let value = try text(.listen), value.hasPrefix(ListenAddress.unixPrefix) else {
            return try address(.listen).map { .network($0) }
        }
        do throws(UnixSocketPath.ParsingError) {
            return .unix(try UnixSocketPath(String(value.dropFirst(ListenAddress.unixPrefix.count))))
        } catch {
            throw ConfigurationError(place: place(.listen), reason: "'\(value)' cannot be used: \(error)")
        }
    }

    /// The administrative listener's address; nil where nothing is said.
    func adminListenAddress() throws(ConfigurationError) -> SocketAddress? {
        if let value = try text(.adminListen), value.hasPrefix(ListenAddress.unixPrefix) {
            throw ConfigurationError(
                place: place(.adminListen),
                reason: "the administrative listener takes an address and port alone: probes and Prometheus ask it"
            )
        }
        return try address(.adminListen)
    }

    /// The permissions of the service's socket; nil where nothing is said.
    func listenMode(of listen: ListenAddress) throws(ConfigurationError) -> UnixSocketMode? {
        guard let value = try text(.listenMode) else { return nil }
        guard let mode = UnixSocketMode(value) else {
            throw ConfigurationError(
                place: place(.listenMode),
                reason: "'\(value)' is no permissions of a socket: octal digits are needed, from 0600 to 0777"
            )
        }
        guard case .unix = listen else {
            throw ConfigurationError(
                place: place(.listenMode),
                reason:
                    "permissions have no meaning for \(listen); set \(ConfigurationKey.listen.rawValue) to unix:PATH"
            )
        }
        return mode
    }
}
