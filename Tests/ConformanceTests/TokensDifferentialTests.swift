import Foundation
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

/// Compares verdicts with an independent verifier in another language.
@Suite(
    "An independent verifier",
    .live,
    .enabled(if: IndependentJudge.isPresent, "python3 with the module joserfc is not there")
)
struct TokensDifferentialTests {
    @Test("20,000 generated tokens get the same verdicts, and a rule explains each difference")
    func agreement() throws {
        var generator = TokenGenerator(seed: 20_261_121)
        var tokens: [String] = []
        while tokens.count < 20_000 {
            let token = try generator.makeSigned()
            tokens.append(token)
            // Signing is slow; small changes are fast.
            for _ in 0..<3 { tokens.append(generator.makeMutant(of: token)) }
        }
        let theirs = try IndependentJudge.verdicts(on: tokens)
        #expect(theirs.count == tokens.count)
        let ours = try Self.verdicts(on: tokens)
        var unexplainedCount = 0
        var rules: [Substring: Int] = [:]
        for (index, (their, our)) in zip(theirs, ours).enumerated() {
            if their.hasPrefix("stricter ") { rules[their.dropFirst(9), default: 0] += 1 }
            guard (their == "accept") != (our == nil) else { continue }
            unexplainedCount += 1
            Issue.record("theirs: \(their), ours: \(our.map(\.detail) ?? "accept"), token: \(tokens[index])")
            if unexplainedCount > 5 { break }
        }
        let acceptedCount = ours.count { $0 == nil }
        #expect(acceptedCount > 1_000 && acceptedCount < 10_000)
        #expect(unexplainedCount == 0)
        print(
            "differential: \(tokens.count) tokens, \(acceptedCount) accepted, \(unexplainedCount) unexplained differences"
        )
        print(
            "differential: refused here by a rule joserfc lacks:",
            rules.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        )
    }

    private static func verdicts(on tokens: [String]) throws -> [Rejection?] {
        let verifier = TokenVerifier(policy: try VerificationPolicy(appIDs: [TokenGenerator.appID]))
        let expectation = TokenExpectation(binding: .nonce(try #require(Nonce(TokenGenerator.nonce))))
        let now = try #require(NumericDate(secondsSince1970: TokenGenerator.now))
        let keys = VerificationKeys(StandInKeys.set)
        var workspace = VerificationWorkspace()
        return tokens.map { token in
            do throws(Rejection) {
                _ = try verifier.judge(token.utf8.span, expectation, keys: keys, now: now, workspace: &workspace)
                return nil
            } catch {
                return error
            }
        }
    }
}

/// The script that judges tokens with joserfc.
enum IndependentJudge {
    private static let script = ProjectFiles.path("Tests/ConformanceTests/Differential/judge.py")

    static let isPresent: Bool = (try? run(["-c", "import joserfc"]))?.status == 0

    static func verdicts(on tokens: [String]) throws -> [String] {
        let setup: [String: Any] = [
            "keys": try JSONSerialization.jsonObject(
                with: Data(TokenMinter.jwkSet([StandInKeys.current, StandInKeys.previous]))
            ),
            "now": TokenGenerator.now, "skew": 60, "issuers": VerificationPolicy.defaultIssuers,
            "app": TokenGenerator.appID, "nonce": TokenGenerator.nonce,
        ]
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "tokens")
        let lines = [String(decoding: try JSONSerialization.data(withJSONObject: setup), as: UTF8.self)] + tokens
        try Data(lines.joined(separator: "\n").utf8).write(to: file)
        let result = try run([script, file.path])
        #expect(result.status == 0)
        return result.output.split(separator: "\n").map(String.init)
    }

    private static func run(_ arguments: [String]) throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["python3"] + arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: data, as: UTF8.self))
    }
}
