internal import Logging
internal import ServiceLifecycle
internal import UnixSignals

/// Runs services until SIGTERM or SIGINT, then stops them in the reverse order.
enum Lifecycle {
    static func run(_ services: [any Service]) async throws {
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: services,
                gracefulShutdownSignals: [.sigterm, .sigint],
                // The services log what matters to an operator; the group's own lines are about its inner life.
                logger: Logger(label: "limited-login") { _ in SwiftLogNoOpLogHandler() }
            )
        )
        try await group.run()
    }
}
