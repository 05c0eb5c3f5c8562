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
        var header: [UInt8] = []
        var keyID: [UInt8] = []
    }

    private func judge(_ token: String, in workspace: inout VerificationWorkspace) -> Outcome {
        let bytes = Array(token.utf8)
        var outcome = Outcome()
        do throws(Rejection) {
            let claims = try Login.sharedVerifier.judge(
                bytes.span,
                Login.expectation,
                keys: VerificationKeys(StandInKeys.set),
                now: Login.sharedNow,
                workspace: &workspace
            )
            outcome.subject = JSONText.value(workspace.payload.span, claims.subject)
            outcome.header = workspace.header.bytes
        } catch {
            outcome.rejection = error
        }
        outcome.keyID = workspace.keyID
        return outcome
    }

    /// Tokens with headers that differ in a checked member, in one byte, or not at all.
    private func tokens() throws -> [String] {
        let (current, previous) = (StandInKeys.current.keyID, StandInKeys.previous.keyID)
        var members = [
            #"{"alg":"RS256","kid":"\#(current)","typ":"JWT"}"#, #"{"alg":"RS256","kid":"\#(current)","typ":"JOS"}"#,
            #"{"alg":"RS256","typ":"JWT","kid":"\#(current)"}"#, #"{"alg":"HS256","kid":"\#(current)","typ":"JWT"}"#,
            #"{"alg":"none","kid":"\#(current)","typ":"JWT"}"#, #"{"alg":"RS256","kid":"\#(previous)","typ":"JWT"}"#,
            #"{"alg":"RS256","kid":"\#(current)x","typ":"JWT"}"#, #"{"alg":"RS256","typ":"JWT"}"#,
            #"{"alg":"RS256","kid":"\#(current)","crit":["b64"]}"#, #"{"alg":"RS256","kid":"\#(current)","cty":"JWT"}"#,
            #"{"alg":"RS256","kid":"\#(current)","enc":"A128GCM"}"#, #"{"kid":"\#(current)","typ":"JWT"}"#,
            #"{"\u0061lg":"RS256","kid":"\#(current)"}"#, #"{"alg":"RS256","kid":"","typ":"JWT"}"#,
            #"{"alg":"RS256","alg":"RS256","kid":"\#(current)"}"#, #"["alg","RS256"]"#, "{}",
        ]
        let filling = String(repeating: "x", count: 500)
        members.append(#"{"alg":"RS256","kid":"\#(current)","x":"\#(filling)"}"#)
        members.append(#"{"alg":"none","kid":"\#(current)","x":"\#(filling)!"}"#)
        var tokens = try members.map { try Login.token(header: $0) }
        let good = tokens[0]
        // A header that is used above, with a foreign signature or another payload; and damaged texts.
        tokens.append(try StandInKeys.stranger.mint(header: Array(members[0].utf8), payload: Login.claims.payload))
        tokens.append(try Login.token("exp", "1"))
        tokens.append(String(good.dropLast(4)))
        tokens.append("=" + good)
        tokens.append(good.replacing(".", with: "..", maxReplacements: 1))
        tokens.append("")
        return tokens
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
                let former = judge(tokens[first], in: &workspace)
                #expect(former == fresh[first], "\(first) before \(second)")
                let latter = judge(tokens[second], in: &workspace)
                #expect(latter == fresh[second], "\(second) after \(first)")
            }
        }
    }
}
