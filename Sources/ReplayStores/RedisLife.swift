/// The time from which on a server's memory is whole.
///
/// A server that was restarted may have lost what it knew, and one that took over from another may never have known it.
/// So each run of a server has a key that says since when, by the server's own clock, nothing was lost; the first replica
/// to see a new run writes it, and all others read it. What came to be before is refused. Another key says the same for
/// the data as a whole, wherever they were carried, and the later of the two counts.
package struct RedisLife: Equatable, Sendable {
    /// The server's run.
    package let identity: String
    /// What the run's key holds.
    let written: Beginning
    /// Since when nothing was lost, in milliseconds since 1970.
    package let since: UInt64
    /// Whether something is known to have been lost before that.
    package let isAfterLoss: Bool

    /// When a memory began, as it stands in a key.
    struct Beginning: Equatable {
        /// Milliseconds since 1970, by the server's clock.
        let moment: UInt64
        /// Whether there was a memory before it. Where none is known of, nonces of before are refused all the same, for a
        /// nonce lives minutes; tokens live longer and are not this service's own, and a first start must not refuse them.
        let isAfterLoss: Bool

        /// The mark behind the moment.
        private static let lossMark = " after loss"

        init(moment: UInt64, isAfterLoss: Bool) {
            self.moment = moment
            self.isAfterLoss = isAfterLoss
        }

        /// What a key holds; nil where it holds no beginning.
        init?(_ reply: RedisReply) {
            guard let text = reply.text else { return nil }
            let isAfterLoss = text.hasSuffix(Self.lossMark)
            let digits = isAfterLoss ? text.dropLast(Self.lossMark.count) : text[...]
            guard let moment = RedisLife.moment(digits) else { return nil }
            self.init(moment: moment, isAfterLoss: isAfterLoss)
        }

        var text: String { isAfterLoss ? "\(moment)\(Self.lossMark)" : "\(moment)" }
    }

    /// - Parameter inherited: what ``dataKey`` holds.
    init(identity: String, written: Beginning, inherited: Beginning?) {
        self.identity = identity
        self.written = written
        since = max(written.moment, inherited?.moment ?? 0)
        isAfterLoss = written.isAfterLoss || inherited?.isAfterLoss == true
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
    ///   - lastIdentity: the run this process knew last.
    ///   - knowsLastRun: whether the data hold that run; true where there is none.
    static func beginning(
        _ facts: RedisServerFacts,
        writesThrough: Bool,
        now: UInt64,
        inherited: Beginning?,
        lastIdentity: String?,
        knowsLastRun: Bool
    ) -> Beginning {
        // Only a server that has every write on its disk before it answers, and whose data are its own, lost nothing.
        guard facts.appendsToFile, writesThrough, !facts.tookOver, knowsLastRun, let inherited else {
            return Beginning(moment: now, isAfterLoss: inherited != nil || lastIdentity != nil)
        }
        return inherited
    }

    /// A number as it stands in a key or an answer: at most 15 digits.
    static func moment(_ text: Substring) -> UInt64? {
        guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return UInt64(text)
    }
}
