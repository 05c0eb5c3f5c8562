import Glibc
import LLHTTP
import LLTestSupport

/// The server alone, answering by the contract of Http11Probe, so that outside tools can score and load it.
///
/// Usage: `http11-probe-server [ADDRESS:PORT [WORKERS [agreeable]]]`, by default 127.0.0.1:8080 and a worker for each
/// processor; `agreeable` answers 200 to every request the server itself does not refuse.
@main
struct Http11ProbeServer {
    static func main() throws {
        let arguments = CommandLine.arguments
        let text = arguments.count > 1 ? arguments[1] : "127.0.0.1:8080"
        guard let address = SocketAddress(text) else {
            print("not an address with a port: \(text)")
            return
        }
        let workerCount = arguments.count > 2 ? Int(arguments[2]) : nil
        let isAgreeable = arguments.count > 3 && arguments[3] == "agreeable"
        let server = HTTPServer(
            configuration: HTTPServerConfiguration(address: .network(address), workerCount: workerCount)
        ) { _ in isAgreeable ? TestHandler() : .probe() }
        // Dispatch's threads block all signals, so that this thread alone takes these.
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe sigaddset(&signals, SIGTERM)
        unsafe sigaddset(&signals, SIGINT)
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
        try server.start()
        print("listening on \(server.localAddress?.description ?? "")")
        var number: Int32 = 0
        unsafe sigwait(&signals, &number)
        server.beginStop(drainDelay: .zero, grace: .seconds(10))
        server.waitUntilEnded()
    }
}
