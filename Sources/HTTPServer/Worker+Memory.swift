extension Worker {
    /// The connections hold more than the worker's share: those of a crowd from one peer address are closed first, then
    /// the largest, the oldest of equals first, until a sixteenth of the share is free, so that not every byte that comes next costs a walk through all of them.
    mutating func freeMemory() {
        let target = memoryShare - memoryShare / 16
        // One peer's many small connections must not close another's single larger one.
        let crowd = peers.greatest().flatMap { isCrowd($0.count) ? $0.peer : nil }
        var all: [(connection: Connection, inCrowd: Int, bytes: Int)] = []
        for connection in table.all() {
            let isOfCrowd = crowd.map { peers.isFrom($0, connection.slot) } ?? false
            all.append((connection, isOfCrowd ? 1 : 0, connection.accountedBytes))
        }
        all.sort { ($1.inCrowd, $1.bytes, $0.connection.id) < ($0.inCrowd, $0.bytes, $1.connection.id) }
        for (connection, _, _) in all {
            if engine.heldBytes <= target { break }
            close(connection, .memory)
        }
    }
}
