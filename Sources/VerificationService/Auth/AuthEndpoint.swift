internal import Bytes
internal import HTTP1
internal import HTTPServer
internal import JOSE
internal import LimitedLogin

/// `/auth` and every path below it: tells a gateway whether the request it holds comes with a good token.
///
/// The head alone decides, whatever the method and the path. The status is one of 200, 401, 403 and 503, or 400 where the
/// gateway's own query has a parameter that does not exist: gateways turn any other into a failure of their own. What the
/// token says goes back as `X-Auth-` fields; fields of those names that came with the request are not looked at.
final class AuthEndpoint: Endpoint {
    private let judge: TokenJudge
    private let signatures: SignatureMemory
    private let workerSettings: WorkerSettings

    init(_ parts: WorkerParts) {
        judge = parts.judge
        signatures = parts.signatures
        workerSettings = parts.settings
    }

    /// Answers one request; it may have to wait for keys.
    func answer(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        body: Span<UInt8>,
        visit: RequestVisit,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> Outcome {
        do throws(Problem) {
            let token = try Self.bearerToken(head, bytes)
            let demand = try AuthDemand(head, bytes)
            let verdict: TokenJudge.Outcome
            do throws(Problem) {
                verdict = try judge.judge(
                    bytes.extracting(token),
                    TokenJudge.Question(appID: demand.appID),
                    signatures: signatures,
                    verifier: workerSettings.settings.unboundVerifier,
                    visit: visit,
                    context: context,
                    trace: TraceParent.passedOn(head, bytes)
                )
            } catch {
                throw error.code == .unknownApp ? AuthDemand.unknownApp : error
            }
            switch verdict {
            case .wait(let moment): return .wait(until: moment)
            case .verified(let claims):
                try demand.require(claims)
                try export(claims, &response)
                return .accepted
            }
        } catch {
            return .refused(error)
        }
    }

    /// The token's place in the one `Authorization: Bearer` field (RFC 6750 section 2.1).
    private static func bearerToken(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>
    ) throws(Problem) -> Range<Int> {
        guard head.count(of: "authorization", in: bytes) <= 1 else {
            throw Problem(.missingToken, "The request has more than one Authorization field, so none of them counts.")
        }
        guard let value = head.value(of: "authorization", in: bytes), let token = CallerCredentials.bearer(value, bytes)
        else {
            throw Problem(.missingToken, "The id token is wanted in the field Authorization: Bearer.")
        }
        return token
    }

    private func export(_ claims: VerifiedClaims, _ response: inout HTTPResponse) throws(Problem) {
        let payload = judge.workspace.payload
        // A subject that cannot stand in a field as it is would be another subject at the far end.
        guard let subject = AuthFieldValue.of(claims.subject, in: payload.span) else {
            throw Problem(.rejectedToken(.malformedClaim), "The claim sub does not fit a header field.", claim: "sub")
        }
        guard let audience = AuthFieldValue.of(claims.audience, in: payload.span) else {
            throw Problem(.rejectedToken(.malformedClaim), "The claim aud does not fit a header field.", claim: "aud")
        }
        response.addField("Cache-Control: no-store")
        response.addField("X-Auth-Subject", subject)
        response.addField("X-Auth-Audience", audience)
        response.addField("X-Auth-Expires", String(claims.expiresAt.wholeSeconds))
        if let email = claims.email, let value = AuthFieldValue.of(email, in: payload.span) {
            response.addField("X-Auth-Email", value)
        }
    }
}

/// A claim as the value of a header field.
enum AuthFieldValue {
    /// Greatest length, in bytes: beyond it gateways refuse the answer.
    static let byteLimit = 1_024

    /// The claim's value, escapes decoded; nil where a field could not carry it to the byte: empty, longer than
    /// ``byteLimit``, or with white space, control characters or other than ASCII (RFC 9110 section 5.5).
    static func of(_ range: Range<Int>, in payload: Span<UInt8>) -> String? {
        let value = JSONText.value(payload, range)
        guard (1...byteLimit).contains(value.utf8.count), value.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            return nil
        }
        return value
    }
}
