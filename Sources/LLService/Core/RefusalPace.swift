internal import LLHTTP
internal import LLJOSE
internal import LimitedLogin

/// Limits the log lines about refusals. Each worker has one.
///
/// Each client can send bad tokens, so a flood of them must not fill the log.
struct RefusalPace {
    /// 10 a second: enough to find a mistake by hand, and at most 1 GB a week for each worker.
    static let linesPerSecond = 10

    private(set) var secondEnds = MonotonicInstant(nanoseconds: 0)
    private var lineCount = 0
    /// The number of refusals without a line that no line has reported yet.
    private(set) var untoldCount = 0

    mutating func admits(at now: MonotonicInstant) -> Bool {
        if now >= secondEnds { (secondEnds, lineCount) = (now + .seconds(1), 0) }
        guard lineCount < Self.linesPerSecond else {
            untoldCount += 1
            return false
        }
        lineCount += 1
        return true
    }

    /// - Returns: The number of refusals without a line in the second that is over; nil if there are none.
    mutating func takeUntold(at now: MonotonicInstant) -> Int? {
        guard untoldCount > 0, now >= secondEnds else { return nil }
        defer { untoldCount = 0 }
        return untoldCount
    }
}

extension WorkerContext {
    /// The name of a person in the audit's lines: SHA-256 of `APP_ID:USER_ID` in hexadecimal. An operator with the user id
    /// can compute it and find the person's lines.
    static func hash(appID: String, userID: String) -> String? {
        try? SHA256.digest(of: Array("\(appID):\(userID)".utf8).span).hexadecimal
    }

    func auditName(_ appID: @autoclosure () -> String, _ userID: @autoclosure () -> String) -> String? {
        core.auditLogger == nil ? nil : Self.hash(appID: appID(), userID: userID())
    }

    func auditName(_ claims: VerifiedClaims, _ payload: [UInt8], app: Range<Int>? = nil) -> String? {
        auditName(JSONText.value(payload.span, app ?? claims.audience), JSONText.value(payload.span, claims.subject))
    }
}
