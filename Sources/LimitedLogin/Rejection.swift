internal import LLJOSE

/// The reason why a credential was refused: an id token, an access token, a DPoP proof, or a signed request of Facebook's.
///
/// Answer 401. It never contains the credential, and a claim's value only if the signature was good. A mistake of the
/// caller is an ``InvalidExpectation``, and a fault of anything else an ``Unavailable``.
public final class Rejection: Error, Equatable, Sendable, CustomStringConvertible {
    /// The stable code: one for all faults of a DPoP proof, and one for all of a signed request.
    public var code: Code { facts.code }
    /// The check that refused an id token; the checks before it passed. Nil for any other credential.
    public var check: VerificationCheck? { facts.check }
    /// The claim at fault, if there is one.
    public var claim: String? { facts.claim?.spelling }
    /// The fault, in one or two sentences.
    public var detail: String { facts.detail }
    /// The remedy, in one sentence. It quotes nothing from the request; grave accents mark this library's parameters.
    public var hint: String { facts.hint }
    package var context: Context { facts.context }

    private let facts: Facts

    private struct Facts: Equatable, Sendable {
        let code: Code
        var check: VerificationCheck?
        var claim: ClaimName?
        var detail: String
        var hint: String
        var context: Context
    }

    /// The facts that only the service's answer and its log have.
    package struct Context: Equatable, Sendable {
        /// The time after which another attempt makes sense, in seconds (RFC 9110 section 10.2.3); nil if none does.
        package var retryAfterSeconds: Int?
        /// The scope that the request needs (RFC 6750 section 3), separated by spaces.
        package var scope: String?
        /// The authentication scheme of the request; a 401 has a challenge of this scheme.
        package var scheme = "Bearer"
        /// True if the refused caller sent credentials. Without any, the challenge has no `error` (RFC 6750 section 3).
        package var hasCredentials = false
        /// Facebook's identifier of a failed call of Graph.
        package var traceID: String?
        package var logged: [String: String] = [:]
    }

    /// A refusal with the facts of the code's row, except for what is given.
    package init(_ code: Code, _ detail: String? = nil, hint: String? = nil, retryAfter: Int? = nil) {
        facts = Facts(
            code: code,
            check: code.check,
            claim: code.claim,
            detail: detail ?? code.detail,
            hint: hint ?? code.hint,
            context: Context(retryAfterSeconds: retryAfter ?? code.retryAfterSeconds)
        )
    }

    private init(_ facts: Facts) { self.facts = facts }

    private func changing(_ change: (inout Facts) -> Void) -> Rejection {
        var facts = facts
        change(&facts)
        return Rejection(facts)
    }

    package func detail(_ sentence: String) -> Rejection { changing { $0.detail = sentence } }
    package func hint(_ sentence: String) -> Rejection { changing { $0.hint = sentence } }

    /// The same of another check and claim than those of the code's row.
    func at(_ check: VerificationCheck?, _ claim: ClaimName? = nil) -> Rejection {
        changing { ($0.check, $0.claim) = (check, claim) }
    }

    package func with(_ change: (inout Context) -> Void) -> Rejection { changing { change(&$0.context) } }

    /// The code and the detail.
    public var description: String { "\(code): \(detail)" }

    /// True if both have the same code, check, claim and sentences.
    public static func == (left: Rejection, right: Rejection) -> Bool { left.facts == right.facts }
}

/// An expectation that no credential can fulfil, a mistake of the program: the app is not in the policy, the nonce is
/// malformed, or nothing ties the token to a login. End no session for it: answer 500, or 400 if your own client sent it.
public struct InvalidExpectation: Error, Equatable, Sendable, CustomStringConvertible {
    package let rejection: Rejection

    init(rejection: Rejection) { self.rejection = rejection }
    init(_ detail: String) { rejection = Rejection(.invalidRequest, detail) }

    /// One sentence for the log.
    public var description: String { rejection.detail }
}

/// The reason why a credential cannot be judged: a fault of the keys, the clock, OpenSSL or Graph. Answer ``status`` with
/// ``retryAfterSeconds``, and let the app try again with the same credential. End no session for it.
public struct Unavailable: Error, Equatable, Sendable, CustomStringConvertible {
    /// There are no keys to verify with, or they are unusable.
    public static let keys = Unavailable(rejection: .keysUnavailable)
    /// OpenSSL failed.
    public static let cryptography = Unavailable(rejection: .cryptographyFailed)
    /// The clock gives no time.
    public static let clock = Unavailable("The clock gives no time to judge a token by; set it right.")
    /// Graph's answer about an access token cannot be read.
    public static let unreadableAnswer = Unavailable("Graph's answer about the access token cannot be read.")

    package let rejection: Rejection
    /// The error of the provider of keys, or `CancellationError` if the task was cancelled; nil for any other fault.
    public private(set) var underlyingError: (any Error)?

    init(rejection: Rejection) { self.rejection = rejection }
    init(_ detail: String) { rejection = Rejection(.internalError, detail) }

    static func keys(_ error: any Error) -> Self {
        var unavailable = Self.keys
        unavailable.underlyingError = error
        return unavailable
    }

    /// The status code of your answer: 429 if made-up tokens exhaust the fetches of keys, since a balancer removes a server
    /// that answers 503; else 503 (RFC 6585 section 4, RFC 9110 section 15.6.4).
    public var status: Int { (underlyingError as? any JWKSetOutage)?.isOverload == true ? 429 : 503 }

    /// The seconds after which another attempt makes sense, for the field `Retry-After` (RFC 9110 section 10.2.3).
    public var retryAfterSeconds: Int {
        let ofProvider = (underlyingError as? any JWKSetOutage)?.retryAfter
        // 5 s: a moment's fault is over then, and a lasting one is not asked about all the time.
        return ofProvider.map { max(1, Int($0.components.seconds)) } ?? rejection.context.retryAfterSeconds ?? 5
    }

    /// One sentence for the log, followed by that of the provider.
    public var description: String { underlyingError.map { "\(rejection.detail) \($0)" } ?? rejection.detail }

    /// The provider's error is not compared.
    public static func == (left: Self, right: Self) -> Bool { left.rejection == right.rejection }
}

extension Rejection {
    /// The public error of the library for a refusal of a check.
    package var error: any Error {
        switch code.kind {
        case .token, .client: self
        case .caller: InvalidExpectation(rejection: self)
        case .outage: Unavailable(rejection: self)
        }
    }

    /// Runs a verdict, and throws the public errors of the library for its refusals.
    static func asError<Verdict>(_ verdict: () throws(Rejection) -> Verdict) throws -> Verdict {
        do throws(Rejection) {
            return try verdict()
        } catch { throw error.error }
    }

    /// The refusal behind a public error of the library.
    package static func of(_ error: any Error) -> Rejection {
        (error as? Rejection) ?? (error as? InvalidExpectation)?.rejection ?? (error as? Unavailable)?.rejection
            ?? .cryptographyFailed
    }

    /// Runs public functions of the library, and throws the refusals behind their errors.
    package static func judging<Verdict>(_ verdict: () throws -> Verdict) throws(Rejection) -> Verdict {
        do {
            return try verdict()
        } catch { throw of(error) }
    }
}
