internal import KeySets
internal import LimitedLogin
internal import Networking

/// Judges tokens with the keys at hand, or says until when a request must wait for others. One for each worker.
final class TokenJudge {
    /// What a token, and whoever asks about it, must be, for `/auth` and `/introspect`, where nobody knows the login, or
    /// only perhaps.
    struct Question {
        /// How the token is tied to a login; `.unbound` where the caller cannot know.
        var binding = BindingKind.unbound
        /// What the binding compares with.
        var bindingValue: [UInt8] = []
        /// The one app the token must be for; empty for any configured one.
        var appID: [UInt8] = []
    }

    /// The verdict, or the wait for it.
    enum Outcome {
        case verified(VerifiedClaims)
        case wait(MonotonicInstant)
    }

    private let workerKeys: WorkerKeys
    private let keyWait: KeyWait
    /// What the token judged last left behind: its payload, which the ranges of its claims point into, and its nonce.
    let workspace = VerificationWorkspace()

    init(cache: JWKSetCache, workerKeys: WorkerKeys) {
        self.workerKeys = workerKeys
        keyWait = KeyWait(cache: cache, workerKeys: workerKeys)
    }

    /// As below, for a question.
    func judge(
        _ token: Span<UInt8>,
        _ question: Question,
        verifier: TokenVerifier,
        visit: RequestVisit,
        context: RequestContext
    ) throws(Problem) -> Outcome {
        try judge(
            token,
            binding: question.binding,
            value: question.bindingValue.span,
            appID: question.appID.span,
            verifier: verifier,
            visit: visit,
            context: context
        )
    }

    /// Judges a token, or says until when it must wait for keys.
    /// - Parameters:
    ///   - value: what the binding compares with.
    ///   - appID: the one app the token must be for; empty for any configured one.
    @inline(__always)
    func judge(
        _ token: Span<UInt8>,
        binding: BindingKind,
        value: Span<UInt8>,
        appID: Span<UInt8>,
        verifier: TokenVerifier,
        visit: RequestVisit,
        context: RequestContext
    ) throws(Problem) -> Outcome {
        // A second and third look are for a key set that is published between the look and the question to the cache.
        for _ in 0..<3 {
            workerKeys.refresh()
            let wait: KeyWait.Outcome
            if workerKeys.isUsable(at: context.now) {
                let now = try ServiceClock.now()
                do throws(TokenRejection) {
                    return .verified(
                        try verifier.judge(
                            token,
                            binding: binding,
                            value: value,
                            appID: appID,
                            keys: workerKeys.keys,
                            now: now,
                            workspace: workspace
                        )
                    )
                } catch {
                    guard error.code == .unknownKey else { throw Problem(error) }
                    wait = try keyWait.forKey(workspace.keyID.span, Problem(error), visit, context)
                }
            } else {
                wait = try keyWait.forAnyKey(visit, context)
            }
            if case .until(let moment) = wait { return .wait(moment) }
        }
        throw KeyWait.restless
    }
}
