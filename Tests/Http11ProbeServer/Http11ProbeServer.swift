import Dispatch
import Glibc
import Networking
import TestSupport

/// The server alone, answering by the contract of Http11Probe, so that outside tools can score and load it.
///
/// Usage: `http11-probe-server [ADDRESS:PORT [WORKERS [agreeable]]]`, by default 127.0.0.1:8080 and a worker for each
/// processor; `agreeable` answers 200 to every request the server itself does not refuse.
@main
struct Http11ProbeServer {
    static func main() async throws {
        let arguments = CommandLine.arguments
        let text = arguments.count > 1 ? arguments[1] : "127.0.0.1:8080"
        guard let address = SocketAddress(text) else {
            print("not an address with a port: \(text)")
            return
        }
        let workerCount = arguments.count > 2 ? Int(arguments[2]) : nil
        let isAgreeable = arguments.count > 3 && arguments[3] == "agreeable"
        let server = HTTPServer(
            configuration: HTTPServerConfiguration(addresses: [address], workerCount: workerCount)
        ) { _ in isAgreeable ? AgreeableHandler() as any HTTPRequestHandler : ProbeHandler() }
        try server.start()
        print("listening on \(server.localAddresses)")
        let signals = [SIGTERM, SIGINT].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { @Sendable in
                Task { await server.stop(drainDelay: .zero, grace: .seconds(10)) }
            }
            source.resume()
            return source
        }
        await server.untilEnded()
        withExtendedLifetime(signals) {}
    }
}
