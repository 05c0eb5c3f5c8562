internal import LLBytes
internal import LLHTTP

/// The reason why the store cannot be used, in words that state the remedy and quote no secret.
package struct RedisFailure: Error, Hashable, Sendable, CustomStringConvertible, ExpressibleByStringInterpolation {
    package let description: String
    /// The node to which the slot of the keys is on its way.
    private(set) var target: RedisNode?

    package init(stringLiteral text: String) { description = text }
}

extension RedisFailure {
    static let timedOut: Self = "the server does not answer in time"
    static let malformedAnswer: Self = "what answers does not speak the Redis protocol, or speaks it through TLS"
    static let answerTooLong: Self =
        "an answer of the server is longer than \(DecimalNumber.grouped(RESPReader.byteLimit)) bytes"
    static let unauthenticated: Self =
        "the password or user is refused: check LIMITED_LOGIN_REPLAY_STORE_PASSWORD_FILE and the user in the URL"
    static let needsNoPassword: Self =
        "the server has no password, but one is given: take it out of the URL and the settings, or set requirepass"
    static let perhapsTLS: Self =
        "the server ended the connection before its first answer: if it speaks TLS, begin the URL with rediss"
    static let perhapsPlain: Self =
        "the server does not answer in TLS: if it speaks none, begin the URL with redis instead of rediss"
    static let certificateNeeded: Self = "the server demands a client's certificate"
    static let tooFewReplicas: Self = "the server has too few replicas to write (min-replicas-to-write)"
    static let readOnly: Self =
        "the server is a read-only replica: name the primary; in a cluster or with Sentinel wait for the end of the failover"
    static let outOfMemory: Self = "the server has no memory left: raise its maxmemory"
    static let loading: Self = "the server is busy or still reading its data"
    static let cannotPersist: Self = "the server refuses writes because it cannot save to its disk"
    static let isCluster: Self = "the server runs in cluster mode: begin the URL with redis+cluster://"
    static let isSentinel: Self =
        "the server is a sentinel: begin the URL with redis+sentinel:// and end it with the name of the master"
    static let isNoCluster: Self = "the server does not run in cluster support mode: begin the URL with redis://"
    static let moved: Self = "the keys went to another node of the cluster"
    static let clusterDown: Self = "the cluster is down, or has no node for the keys"
    static let clusterDisagrees: Self = "the nodes of the cluster do not agree which of them holds the keys"
    static let unknownMaster: Self = "the sentinels watch no master of the name in the URL, or are no sentinels"
    static let sentinelOutdated: Self =
        "a sentinel tells an older primary than another one before: it has missed a failover, or was set up anew"
    static let sentinelUnauthenticated: Self =
        "a sentinel refuses the password: check LIMITED_LOGIN_REPLAY_STORE_SENTINEL_PASSWORD_FILE"
    static let newPrimary: Self =
        "the sentinels name a new primary: it is used once every replica of this service has left the former one, in a few seconds"
    static let anonymous: Self = "the server's INFO has no run_id, so a loss of its data would not be seen"
    static let memoryLost: Self = "the server's data were replaced"
    static let clockChanged: Self = "the server's clock was set, or this machine stood still: run NTP"
    static let tooManyRevocations: Self =
        "the set limited-login:revocations has more members than the service writes: find out what else writes there"

    static func noDatabase(_ number: Int) -> Self {
        "the server has no database \(number): raise its setting databases; a cluster has database 0 alone"
    }

    static func notPermitted(command: String) -> Self {
        """
        the user may not run \(command), or not with its keys; needed are INFO, TIME, GET, SET, ZADD, ZRANGEBYSCORE, ZREM and \
        ZREMRANGEBYSCORE, in a cluster CLUSTER, and with Sentinel ROLE: grant them
        """
    }

    static func unknownCommand(_ command: String) -> Self {
        "the server does not know \(command): take its rename-command out of the server's configuration"
    }

    static func evicting(policy: String) -> Self {
        "the server forgets keys when its memory is full (maxmemory-policy \(policy)): set noeviction"
    }

    static func slotMoves(to node: RedisNode) -> Self {
        var failure: Self = "the slot of the keys is on its way to \(node): wait until it has arrived"
        failure.target = node
        return failure
    }

    static func refused(code: String) -> Self { "the server refuses with \(code)" }

    /// A refusal of a command, from the first word of the server's error.
    init(code: String, of command: String) {
        self =
            switch code {
            case "NOAUTH", "WRONGPASS": .unauthenticated
            case "NOPERM": .notPermitted(command: command)
            case "UNKNOWN": .unknownCommand(command)
            case "READONLY": .readOnly
            case "NOREPLICAS": .tooFewReplicas
            case "OOM": .outOfMemory
            case "LOADING", "MASTERDOWN", "BUSY", "TRYAGAIN": .loading
            case "MISCONF": .cannotPersist
            case "CLUSTERDOWN": .clusterDown
            case "MOVED", "ASK", "CROSSSLOT": .isCluster
            default: .refused(code: code)
            }
    }

    init(_ error: ClientError, at node: RedisNode? = nil) {
        switch error {
        case .timedOut(.handshaking): self = .perhapsPlain
        case .timedOut: self = .timedOut
        case .tls(let reason) where reason.contains("wrong version") || reason.contains("packet length"):
            self = .perhapsPlain
        case .tls(let reason) where reason.contains("certificate required"): self = .certificateNeeded
        default: self = node.map { "\($0): \(error)" } ?? "\(error)"
        }
    }
}
