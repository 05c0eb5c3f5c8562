import LLJOSE
import LLStandIn
import LLTestSupport
import Testing

@testable import LimitedLogin

@Suite("A reused workspace")
struct WorkspaceTests {
    /// A verdict, and the state it left in the workspace.
    private struct Outcome: Equatable {
        var rejection: Rejection?
        var subject = ""
        var keyID: [UInt8] = []
    }

    private func judge(_ token: String, in workspace: inout VerificationWorkspace) -> Outcome {
        var outcome = Outcome()
        do throws(Rejection) {
            let claims = try Login.sharedVerifier.judge(
                token.utf8.span,
                Login.expectation,
                keys: VerificationKeys(StandInKeys.set),
                now: Login.sharedNow,
                workspace: &workspace
            )
            outcome.subject = JSONText.value(workspace.payload.span, claims.subject)
        } catch {
            outcome.rejection = error
        }
        outcome.keyID = workspace.keyID
        return outcome
    }

    /// Tokens with headers that differ in a checked member, in one byte, or not at all.
    private func tokens() throws -> [String] {
        let (current, previous) = (StandInKeys.current.keyID, StandInKeys.previous.keyID)
        let filling = String(repeating: "x", count: 500)
        let headers = [
            #"{"alg":"RS256","kid":"\#(current)","typ":"JWT"}"#, #"{"alg":"RS256","kid":"\#(current)","typ":"JOS"}"#,
            #"{"alg":"RS256","typ":"JWT","kid":"\#(current)"}"#, #"{"alg":"HS256","kid":"\#(current)","typ":"JWT"}"#,
            #"{"alg":"none","kid":"\#(current)","typ":"JWT"}"#, #"{"alg":"RS256","kid":"\#(previous)","typ":"JWT"}"#,
            #"{"alg":"RS256","kid":"\#(current)x","typ":"JWT"}"#, #"{"alg":"RS256","typ":"JWT"}"#,
            #"{"alg":"RS256","kid":"\#(current)","crit":["b64"]}"#, #"{"alg":"RS256","kid":"\#(current)","enc":"A"}"#,
            #"{"\u0061lg":"RS256","kid":"\#(current)"}"#, #"{"alg":"RS256","kid":"","typ":"JWT"}"#, "{}",
            #"{"alg":"RS256","kid":"\#(current)","x":"\#(filling)"}"#,
        ]
        let tokens = try headers.map { try Login.token(header: $0) }
        // A foreign signature, another payload, and damaged texts.
        let forged = try StandInKeys.stranger.mint(header: Array(headers[0].utf8), payload: Login.claims.payload)
        return tokens + [forged, try Login.token("exp", "1"), String(tokens[0].dropLast(4)), "=" + tokens[0], ""]
    }

    @Test("A reused workspace judges like a fresh one, whatever it judged before")
    func independence() throws {
        let tokens = try tokens()
        let fresh = tokens.map { token in
            var workspace = VerificationWorkspace()
            return judge(token, in: &workspace)
        }
        #expect(fresh.filter { $0.rejection == nil }.count == 4)
        var workspace = VerificationWorkspace()
        for first in tokens.indices {
            for second in tokens.indices {
                _ = judge(tokens[first], in: &workspace)
                #expect(judge(tokens[second], in: &workspace) == fresh[second], "\(second) after \(first)")
            }
        }
    }
}
