internal import Logging
internal import ServiceLifecycle

/// Runs services until SIGTERM or SIGINT, then stops them in the reverse order.
enum Lifecycle {
    static func run(_ services: [any Service]) async throws {
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: services,
                // The services log what matters to an operator; the group's own lines are about its inner life.
                logger: Logger(label: "limited-login") { _ in SwiftLogNoOpLogHandler() }
            )
        )
        ProcessSignals.shared.onStop {
            Task(executorPreference: LifecycleExecutor.shared) { await group.triggerGracefulShutdown() }
        }
        try await group.run()
    }
}
