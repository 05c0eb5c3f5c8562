/// The time from which on a server's memory is whole.
///
/// A server that was restarted may have lost what it knew, and one that took over from another may never have known it.
/// So each run of a server has a key that says since when, by the server's own clock, nothing was lost; the first replica
/// to see a new run writes it, and all others read it. What came to be before is refused. Another key says the same for
/// the data as a whole, wherever they were carried, and the later of the two counts.
package struct RedisLife: Equatable, Sendable {
    /// The server's run.
    package let identity: String
    /// What the run's key holds, in milliseconds since 1970.
    let written: UInt64
    /// Since when nothing was lost, in milliseconds since 1970.
    package let since: UInt64

    /// - Parameter inherited: what ``dataKey`` holds.
    init(identity: String, written: UInt64, inherited: UInt64?) {
        self.identity = identity
        self.written = written
        since = max(written, inherited ?? 0)
    }

    /// What every key of this project begins with.
    static let prefix = "limited-login:"
    /// Holds the moment of the data's life, whichever run it was written in.
    static let dataKey = prefix + "life"

    /// Holds the moment of a run's life.
    static func key(of identity: String) -> String { dataKey + ":" + identity }

    /// The key of this run.
    var key: String { Self.key(of: identity) }

    /// The moment of a run that has none yet.
    /// - Parameters:
    ///   - now: the server's clock.
    ///   - inherited: what ``dataKey`` holds: the life of the data that the server read when it started.
    ///   - knowsLastRun: whether the data hold the run this process knew last, if it knew one.
    static func beginning(
        _ facts: RedisServerFacts,
        writesThrough: Bool,
        now: UInt64,
        inherited: UInt64?,
        knowsLastRun: Bool
    ) -> UInt64 {
        // Only a server that has every write on its disk before it answers, and whose data are its own, lost nothing.
        guard facts.appendsToFile, writesThrough, !facts.tookOver, knowsLastRun, let inherited else { return now }
        return inherited
    }

    /// A moment as it stands in a key: at most 15 digits.
    static func moment(_ reply: RedisReply) -> UInt64? {
        guard let text = reply.text, (1...15).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return UInt64(text)
    }
}
