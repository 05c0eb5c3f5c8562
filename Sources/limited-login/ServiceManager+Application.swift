internal import FoundationEssentials
internal import Logging
internal import Networking
internal import VerificationService

extension Application {
    /// Tells the service manager, where there is one.
    func notify(_ state: ServiceManager.State, _ status: String) {
        let socket = ProcessInfo.processInfo.environment["NOTIFY_SOCKET"]
        guard let manager = ServiceManager(notifySocket: socket) else { return }
        do throws(SocketError) {
            try manager.notify(state, status: status)
        } catch {
            core.logger.warning("the service manager cannot be told", metadata: ["reason": "\(error)"])
        }
    }
}
