internal import LLBytes
internal import LLHTTP

/// The reason why the store cannot be used. The description states the remedy and quotes no secret.
package enum RedisFailure: Error, Equatable, Sendable, CustomStringConvertible {
    /// The connection could not be made or broke. The text is the network's reason.
    case connection(String)
    case timedOut
    /// The answer is not RESP, or has longer lines or arrays than ``RESPLimits`` allow.
    case malformedAnswer
    case answerTooLong
    case unauthenticated
    case needsNoPassword
    case noDatabase(Int)
    case unknownCommand(String?)
    case perhapsTLS
    case perhapsPlain
    case certificateNeeded
    case tooFewReplicas
    /// The user may not run a command; nil if the command is unknown.
    case notPermitted(command: String? = nil)
    case readOnly
    case outOfMemory
    case evicting(policy: String)
    case loading
    case cannotPersist
    case unsupportedMode(String)
    case moved
    case slotMoves(to: RedisNode)
    case clusterDown
    case clusterDisagrees
    case unknownMaster
    case sentinelUnauthenticated
    case sentinelOutdated
    case newPrimary
    case anonymous
    case memoryLost
    case clockChanged
    case tooManyRevocations
    case refused(code: String)

    /// A refusal of the server, from the first word of its error.
    /// - Parameter command: the refused command; nil if it is not known.
    init(code: String, of command: String? = nil) {
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
            case "MOVED", "ASK", "CROSSSLOT": .unsupportedMode("cluster")
            default: .refused(code: code)
            }
    }

    /// The redirection of a server to another one.
    /// - Parameter node: the server that answered. A target without a host has the same host.
    init(_ redirect: RedisRedirect, isInCluster: Bool, at node: RedisNode?) {
        switch redirect {
        case _ where !isInCluster: self = .unsupportedMode("cluster")
        case .moved: self = .moved
        case .ask(let target):
            self = .slotMoves(
                to: RedisNode(host: target.host.isEmpty ? node?.host ?? "" : target.host, port: target.port)
            )
        }
    }

    init(_ error: StreamError) {
        switch error {
        case .timedOut(.handshaking): self = .perhapsPlain
        case .timedOut: self = .timedOut
        case .tls(let reason) where reason.contains("wrong version") || reason.contains("packet length"):
            self = .perhapsPlain
        case .tls(let reason) where reason.contains("certificate required"): self = .certificateNeeded
        default: self = .connection(error.description)
        }
    }

    package var description: String {
        switch self {
        case .connection(let reason): reason
        case .timedOut: "the server does not answer in time"
        case .malformedAnswer: "what answers does not speak the Redis protocol, or speaks it through TLS"
        case .answerTooLong:
            "an answer of the server is longer than \(DecimalNumber.grouped(RESPLimits.answerBytes)) bytes"
        case .unauthenticated:
            "the password or user is refused: check LIMITED_LOGIN_REPLAY_STORE_PASSWORD_FILE and the user in the URL"
        case .needsNoPassword:
            "the server has no password, but one is given: take it out of the URL and the settings, or set requirepass"
        case .noDatabase(let number):
            "the server has no database \(number): raise its setting databases; a cluster has database 0 alone"
        case .unknownCommand(let command):
            "the server does not know \(command ?? "a command"): take its rename-command out of the server's configuration"
        case .perhapsTLS:
            "the server ended the connection before its first answer: if it speaks TLS, begin the URL with rediss"
        case .perhapsPlain:
            "the server does not answer in TLS: if it speaks none, begin the URL with redis instead of rediss"
        case .certificateNeeded: "the server demands a client's certificate"
        case .tooFewReplicas: "the server has too few replicas to write (min-replicas-to-write)"
        case .notPermitted(let command):
            "the user may not run \(command.map { "\($0), or not with its keys; needed are" } ?? "all of") INFO, TIME, GET, SET, ZADD, "
                + "ZRANGEBYSCORE, ZREM and ZREMRANGEBYSCORE, in a cluster CLUSTER, and with Sentinel ROLE: grant them"
        case .readOnly:
            "the server is a read-only replica: name the primary; in a cluster or with Sentinel wait for the end of the failover"
        case .outOfMemory: "the server has no memory left: raise its maxmemory"
        case .evicting(let policy):
            "the server forgets keys when its memory is full (maxmemory-policy \(policy)): set noeviction"
        case .loading: "the server is busy or still reading its data"
        case .cannotPersist: "the server refuses writes because it cannot save to its disk"
        case .unsupportedMode("cluster"): "the server runs in cluster mode: begin the URL with redis+cluster://"
        case .unsupportedMode("sentinel"):
            "the server is a sentinel: begin the URL with redis+sentinel:// and end it with the name of the master"
        case .unsupportedMode(let mode): "the server does not run in \(mode) mode: begin the URL with redis://"
        case .moved: "the keys went to another node of the cluster"
        case .slotMoves(let node): "the slot of the keys is on its way to \(node): wait until it has arrived"
        case .clusterDown: "the cluster is down, or has no node for the keys"
        case .clusterDisagrees: "the nodes of the cluster do not agree which of them holds the keys"
        case .unknownMaster: "the sentinels watch no master of the name in the URL, or are no sentinels"
        case .sentinelOutdated:
            "a sentinel tells an older primary than another one before: it has missed a failover, or was set up anew"
        case .sentinelUnauthenticated:
            "a sentinel refuses the password: check LIMITED_LOGIN_REPLAY_STORE_SENTINEL_PASSWORD_FILE"
        case .newPrimary:
            "the sentinels name a new primary: it is used once every replica of this service has left the former one, in a few seconds"
        case .anonymous: "the server's INFO has no run_id, so a loss of its data would not be seen"
        case .memoryLost: "the server's data were replaced"
        case .clockChanged: "the server's clock was set, or this machine stood still: run NTP"
        case .tooManyRevocations:
            "the set limited-login:revocations has more members than the service writes: find out what else writes there"
        case .refused(let code): "the server refuses with \(code)"
        }
    }
}
