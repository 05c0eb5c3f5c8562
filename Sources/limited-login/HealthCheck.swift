internal import ArgumentParser
internal import HTTPClient
internal import Sockets
internal import VerificationService

struct HealthCheck: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "healthcheck",
        abstract: "Asks the running service whether it is alive (or, with --ready, ready).",
        discussion: "Reads the same configuration as the service to find its administrative listener. "
            + "Exit code 0 when it is well, 1 when it is not, 78 when the configuration cannot be used."
    )

    @Flag(help: "Ask for readiness: usable keys, known revocations, and not stopping.")
    var ready = false

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        let listener = try options.load().configuration.adminListen
        guard listener.port != 0 else {
            throw Exit.refusing("admin_listen: port 0 is another one at each start; name a port that can be asked")
        }
        let path = ready ? "/readyz" : "/livez"
        do {
            let url = try HTTPURL(parsing: "http://\(Self.reachable(listener))\(path)")
            var limits = HTTPSClientLimits()
            limits.race.timeout = .seconds(2)
            limits.fetchTimeout = .seconds(4)
            let answer = try HTTPSClient().get(url, limits: limits)
            if answer.status == 200 { return StandardOutput.write("ok") }
            StandardError.write("limited-login: \(path) answers \(answer.status)")
        } catch {
            StandardError.write("limited-login: \(path) does not answer: \(error)")
        }
        throw Exit.unhealthy
    }

    /// A listener on all addresses is reached by the loopback one.
    private static func reachable(_ address: SocketAddress) -> SocketAddress {
        switch address.host {
        case "0.0.0.0": .loopback(port: address.port)
        case "::": .loopbackIPv6(port: address.port)
        default: address
        }
    }
}
