package import Logging
internal import Synchronization

/// The least severity that is logged, shared by all handlers, so that a reload can change it.
package final class LogLevelSwitch: Sendable {
    private let position: Atomic<Int>

    package init(_ level: Logger.Level) { position = Atomic(Self.position(of: level)) }

    /// The level in force.
    package var level: Logger.Level {
        let all = Logger.Level.allCases
        let index = position.load(ordering: .relaxed)
        return all.indices.contains(index) ? all[index] : .info
    }

    /// Puts another level in force.
    package func set(_ level: Logger.Level) { position.store(Self.position(of: level), ordering: .relaxed) }

    private static func position(of level: Logger.Level) -> Int { Logger.Level.allCases.firstIndex(of: level) ?? 0 }
}
