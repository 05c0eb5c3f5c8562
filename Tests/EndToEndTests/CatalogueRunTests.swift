import Foundation
import LLTestSupport
import Testing

@Suite("catalogue run: the score of a backend", .live)
struct CatalogueRunTests {
    private struct Report: Decodable {
        struct Try: Decodable {
            let name: String
            let must: String
            let did: String
            let right: Bool
            let why: String
        }

        let right: Int
        let asked: Int
        let tries: [Try]

        func did(_ name: String) -> String? { tries.first { $0.name == name }?.did }
    }

    private func report(_ arguments: [String]) throws -> (run: FinishedRun, report: Report) {
        let run = try FinishedRun(["catalogue", "run", "--json"] + arguments)
        return (run, try JSONDecoder().decode(Report.self, from: Data(run.output.utf8)))
    }

    /// The command, its outcome, and what must have been done where it is right.
    private static let programs = [
        ("true", "accepted", "accept"), ("false", "refused", "refuse"),
        // It fails at every token but the first one.
        ("[ -e $seen ] && exit 70; touch $seen", "the program failed with exit code 70", ""),
    ]

    @Test("A program that always says the same, or fails, is told its wrong answers", arguments: programs)
    func sameAnswer(command: String, did: String, right: String) throws {
        let folder = try ShortFolder()
        let (run, report) = try report(
            ["--exec", "seen=\(folder.path)/seen; \(command)", "--issuer-listen", "127.0.0.1:0"]
        )
        #expect(run.exitCode == 1)
        let asked = report.tries.filter { $0.did != "not asked" }
        #expect(asked.count > 35 && asked.count == report.asked)
        // Without the keys a failure is right too.
        for one in asked where one.name != "outage-unknown-key" {
            #expect(one.did == did && one.right == (one.must == right) && !one.why.isEmpty, "\(one)")
        }
        #expect(report.right == asked.filter(\.right).count)
        for name in ["nonce-again", "refresh", "other-refresh"] { #expect(report.did(name) == "not asked") }
    }

    @Test(
        "A program without a verdict on a good token ends the run with its reason and exit code 3",
        arguments: [("exit 70", "70"), ("kill -9 $$", "137"), ("/nothing/here 2>&1", "127"), ("exit 64", "64")]
    )
    func noVerdict(command: String, code: String) throws {
        let run = try FinishedRun(["catalogue", "run", "--exec", command, "--issuer-listen", "127.0.0.1:0"])
        #expect(run.exitCode == 3)
        #expect(run.errors.contains("no verdict on a good login: the program failed with exit code \(code)"), "\(run)")
        #expect(!run.output.contains("WRONG"))
    }

    @Test("A program gets the token on standard input and the rest as variables; JUnit's file has each try")
    func variables() throws {
        let folder = try ShortFolder()
        let (seen, junit) = ("\(folder.path)/seen", "\(folder.path)/junit.xml")
        let command = "read token; echo \"$NONCE|$APP_ID|$ISSUER|$JWKS_URL|$token\" >> \(seen); exit 1"
        let run = try FinishedRun(
            ["catalogue", "run", "--exec", command, "--issuer-listen", "127.0.0.1:0", "--junit", junit]
        )
        #expect(run.exitCode == 1)
        #expect(run.output.contains("WRONG  good:") && run.output.contains("right  expired:"))
        let lines = try String(contentsOfFile: seen, encoding: .utf8).split(separator: "\n")
        let first = try #require(lines.first?.split(separator: "|").map(String.init))
        #expect(first.count == 5 && first[0].hasPrefix("n-") && first[1] == "123456789012345")
        #expect(first[2] == "https://www.facebook.com" && first[3].hasSuffix("/.well-known/oauth/openid/jwks/"))
        #expect(first[4].split(separator: ".").count == 3)
        let xml = try String(contentsOfFile: junit, encoding: .utf8)
        // Four tries are not asked, one sends two tokens, and a good one comes before all.
        #expect(xml.ranges(of: "<testcase").count == lines.count + 2 && xml.ranges(of: "<skipped/>").count == 4)
        #expect(xml.contains("name=\"good\"><failure message=\"must be accepted: refused."))
    }

    @Test("The service scores whole, with nonces of its own")
    func service() throws {
        let folder = try ShortFolder()
        let secret = "\(folder.path)/secret"
        try Data(try FinishedRun(["nonce", "secret"]).output.utf8).write(to: URL(filePath: secret))
        let issuer = try IssuerProcess()
        let address = "\(issuer.address)"
        // The port is free again for the issuer that `catalogue run` plays.
        issuer.process.end()
        let service = try RunningService(
            jwksURL: "http://\(address)/.well-known/oauth/openid/jwks/",
            environment: ["LIMITED_LOGIN_NONCE_SECRET_FILE": secret]
        )
        let base = "http://\(service.listenAddress)"
        let (run, report) = try report([
            "--begin", "\(base)/nonces", "--url", "\(base)/verify", "--issuer-listen", address,
        ])
        #expect(run.exitCode == 0, "\(run.output)")
        #expect(report.right == report.asked && report.asked > 35)
        #expect(report.did("nonce-again") == "refused" && report.did("withdrawn-key") == "refused")
        #expect(report.did("outage") == "accepted" && report.did("outage-over") == "accepted")
        #expect(report.did("other-person") == "not asked")
    }
}
