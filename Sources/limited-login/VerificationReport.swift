internal import JOSE
internal import LimitedLogin
internal import VerificationService

/// The login that a token should belong to, as the command line names it.
struct ExpectedLogin {
    var binding = BindingKind.unbound
    /// The nonce or the user.
    var value: [UInt8] = []
    /// What else must hold.
    var added = AddedExpectation()

    /// Whether the token prolongs a session rather than begins one.
    var isRefresh: Bool { binding == .subject || !added.subject.isEmpty }

    /// Whether the check was asked for. Only what the caller can leave out may not be.
    func asks(for check: VerificationCheck) -> Bool {
        switch check {
        case .binding: binding != .unbound
        case .device: !added.keyThumbprint.isEmpty
        case .accessToken: !added.accessToken.isEmpty
        default: true
        }
    }

    /// What the check asks, for a person.
    func title(of check: VerificationCheck) -> String {
        guard check == .binding, isRefresh else { return check.title }
        return binding == .subject
            ? "The token belongs to the person of this session"
            : "The token is a refresh of this login and belongs to its person"
    }
}

/// Judges id tokens as the service would.
enum VerificationReport {
    /// Judges the token.
    ///
    /// - Parameter verifier: judges in place of one that is made of the configuration.
    static func make(
        token: [UInt8],
        login: ExpectedLogin,
        keySet: JSONWebKeySet,
        configuration: ServiceConfiguration,
        now moment: NumericDate,
        verifier: TokenVerifier? = nil
    ) throws -> CheckReport {
        let verifier =
            try verifier
            ?? TokenVerifier(
                policy: ServiceParts.policy(configuration),
                nonces: ServiceParts.nonceIssuer(configuration)
            )
        let workspace = VerificationWorkspace()
        let anyApp: [UInt8] = []
        func report(_ refused: (why: Refusal, cure: String)?, _ answer: [UInt8] = []) -> CheckReport {
            CheckReport(
                failed: refused?.why.check,
                refusal: refused.map { refused in
                    CheckReport.Refusal(
                        code: refused.why.code.rawValue,
                        claim: refused.why.claim,
                        detail: refused.why.detail,
                        cure: refused.cure
                    )
                },
                answer: answer,
                moment: moment
            ) { check in
                ("\(check)", login.title(of: check), login.asks(for: check))
            }
        }
        do throws(Refusal) {
            let claims = try verifier.judge(
                token.span,
                binding: login.binding,
                value: login.value.span,
                appID: anyApp.span,
                added: login.added,
                keys: VerificationKeys(keySet),
                now: moment,
                workspace: workspace
            )
            var answer: [UInt8] = []
            VerifyAnswer.write(
                claims,
                payload: workspace.payload.span,
                keyID: workspace.keyID.span,
                asked: nil,
                isRefresh: login.isRefresh,
                to: &answer
            )
            return report(nil, answer)
        } catch {
            let cure = Cure(token: token, configuration: configuration, login: login, now: moment)
            return report((error, cure.sentence(for: error)))
        }
    }
}
