internal import KeySets
internal import Logging
internal import Networking
internal import ReplayStores
internal import ServiceLifecycle
internal import VerificationService

/// The running service as ServiceLifecycle sees it: it serves until it is told to stop, then drains.
struct ServerService: Service {
    /// How long requests under way may take to end after the listeners have closed.
    static let grace = Duration.seconds(10)

    let application: Application
    /// Called once it serves.
    var whenServing: @Sendable () -> Void = {}

    /// Binding happens here, within the lifecycle, so that a SIGTERM at any moment since is an orderly stop.
    func run() async throws {
        try application.start()
        whenServing()
        // The workers have threads of their own. No endless sleep here: it would be a timer, and wake the process.
        try? await gracefulShutdown()
        await stop()
    }

    private func stop() async {
        let logger = application.core.logger
        application.core.beginDraining()
        application.notify(.stopping, "Stopping")
        let delay = application.configuration.drainDelaySeconds
        logger.notice("stopping", metadata: ["drain_delay_seconds": "\(delay)"])
        let cut = await application.server.stop(drainDelay: .seconds(delay), grace: Self.grace)
        await application.administration.stop(drainDelay: .zero, grace: .seconds(1))
        application.cache.stop()
        if case .redis(let store) = application.replayStore { store.stop() }
        application.core.graph?.stop()
        logger.notice("stopped", metadata: ["requests_cut_off": "\(cut)"])
    }
}
