internal import KeySets
internal import LimitedLogin
internal import Networking

/// Judges tokens whose login nobody knows, or only perhaps: for `/auth` and `/introspect`. One for each worker.
final class UnboundJudge {
    /// What a token, and whoever asks about it, must be.
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
    private let workspace = VerificationWorkspace()

    init(cache: JWKSetCache, workerKeys: WorkerKeys) {
        self.workerKeys = workerKeys
        keyWait = KeyWait(cache: cache, workerKeys: workerKeys)
    }

    /// The payload of the token judged last: what the ranges of its claims point into.
    var payload: [UInt8] { workspace.payload }

    /// Judges a token, or says until when it must wait for keys.
    func judge(
        _ token: Span<UInt8>,
        _ question: Question,
        verifier: TokenVerifier,
        visit: RequestVisit,
        context: RequestContext
    ) throws(Problem) -> Outcome {
        for _ in 0..<3 {
            workerKeys.refresh()
            switch try look(token, question, verifier, visit, context) {
            case .verified(let claims): return .verified(claims)
            case .wait(.until(let moment)): return .wait(moment)
            case .wait(.lookAgain): continue
            }
        }
        throw KeyWait.restless
    }

    private enum Look {
        case verified(VerifiedClaims)
        case wait(KeyWait.Outcome)
    }

    private func look(
        _ token: Span<UInt8>,
        _ question: Question,
        _ verifier: TokenVerifier,
        _ visit: RequestVisit,
        _ context: RequestContext
    ) throws(Problem) -> Look {
        guard workerKeys.isUsable(at: context.now) else { return .wait(try keyWait.forAnyKey(visit, context)) }
        let now = try ServiceClock.now()
        do throws(TokenRejection) {
            return .verified(
                try verifier.judge(
                    token,
                    binding: question.binding,
                    value: question.bindingValue.span,
                    appID: question.appID.span,
                    keys: workerKeys.keys,
                    now: now,
                    workspace: workspace
                )
            )
        } catch {
            guard error.code == .unknownKey else { throw Problem(error) }
            return .wait(try keyWait.forKey(workspace.keyID.span, Problem(error), visit, context))
        }
    }
}
