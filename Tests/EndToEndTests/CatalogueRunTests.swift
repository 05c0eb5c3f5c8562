import Foundation
import LLTestSupport
import Testing

@Suite("catalogue run: the score of a backend", .live)
struct CatalogueRunTests {
    private struct Report: Decodable {
        struct Try: Decodable {
            let name, must, did, why: String
            let right: Bool
        }

        let right: Int
        let asked: Int
        let tries: [Try]

        func did(_ name: String) -> String? { tries.first { $0.name == name }?.did }
    }

    private func run(_ arguments: String..., issuer: String = "127.0.0.1:0") throws -> FinishedRun {
        try FinishedRun(["catalogue", "run", "--issuer-listen", issuer] + arguments)
    }

    @Test("A program that always says the same, or fails, is told its wrong answers; without a verdict the run ends")
    func wrongPrograms() throws {
        // The command, its outcome, and the verdict that is right for it.
        for (command, did, right) in [
            ("true", "accepted", "accept"), ("false", "refused", "refuse"),
            // It fails at every token but the first one.
            ("[ -e $seen ] && exit 70; touch $seen", "the program failed with exit code 70", ""),
        ] {
            let folder = try ShortFolder()
            let run = try run("--json", "--exec", "seen=\(folder.path)/seen; \(command)")
            let report = try JSONDecoder().decode(Report.self, from: Data(run.output.utf8))
            let asked = report.tries.filter { $0.did != "not asked" }
            #expect(run.exitCode == 1 && asked.count > 35 && asked.count == report.asked)
            // Without the keys a failure is right too.
            for one in asked where one.name != "outage-unknown-key" {
                #expect(one.did == did && one.right == (one.must == right) && !one.why.isEmpty, "\(one)")
            }
            #expect(report.right == asked.filter(\.right).count)
            for name in ["nonce-again", "refresh", "other-refresh"] { #expect(report.did(name) == "not asked") }
        }
        // It gives no verdict on the good token that comes first.
        for (command, code) in [("kill -9 $$", "137"), ("/nothing/here 2>&1", "127"), ("exit 64", "64")] {
            let run = try run("--exec", command)
            #expect(run.exitCode == 3 && !run.output.contains("WRONG"))
            #expect(run.errors.contains("no verdict on a good login: the program failed with exit code \(code)"))
        }
    }

    @Test("A program gets the token on standard input and the rest as variables; JUnit's file has each try")
    func variables() throws {
        let folder = try ShortFolder()
        let (seen, junit) = ("\(folder.path)/seen", "\(folder.path)/junit.xml")
        let command = "read token; echo \"$NONCE|$APP_ID|$ISSUER|$JWKS_URL|$token\" >> \(seen); exit 1"
        let run = try run("--exec", command, "--junit", junit)
        #expect(run.exitCode == 1 && run.output.contains("WRONG  good:") && run.output.contains("right  expired:"))
        let lines = try String(contentsOfFile: seen, encoding: .utf8).split(separator: "\n")
        let keys = "http://127\\.0\\.0\\.1:\\d+/.well-known/oauth/openid/jwks/"
        let start = "n-\\w+\\|123456789012345\\|https://www.facebook.com"
        let form = try Regex("\(start)\\|\(keys)\\|[\\w-]+\\.[\\w-]+\\.[\\w-]+")
        #expect(lines.first?.wholeMatch(of: form) != nil, "\(lines.first ?? "")")
        let xml = try String(contentsOfFile: junit, encoding: .utf8)
        // Four tries are not asked, one sends two tokens, and a good one comes before all.
        #expect(xml.ranges(of: "<testcase").count == lines.count + 2 && xml.ranges(of: "<skipped/>").count == 4)
        #expect(xml.contains("name=\"good\"><failure message=\"must be accepted: refused."))
    }

    @Test("The service scores whole, with nonces of its own")
    func service() throws {
        let folder = try ShortFolder()
        // No other test takes a port of this address in between.
        let issuer = try IssuerProcess("--listen", "127.0.0.9:0")
        let (address, jwksURL) = ("\(issuer.address)", issuer.jwksURL)
        // The port is free again for the issuer that `catalogue run` plays.
        issuer.process.end()
        let service = try RunningService(
            nil,
            ["jwks_urls": jwksURL, "nonce_secret_file": try folder.nonceSecret()]
        )
        let base = "http://\(service.listenAddress)"
        let run = try run("--json", "--begin", "\(base)/nonces", "--url", "\(base)/verify", issuer: address)
        try #require(run.exitCode == 0, "\(run.errors)\(run.output)")
        let report = try JSONDecoder().decode(Report.self, from: Data(run.output.utf8))
        #expect(report.right == report.asked && report.asked > 35, "\(run.output)")
        for (name, did) in [
            ("nonce-again", "refused"), ("withdrawn-key", "refused"), ("outage", "accepted"),
            ("outage-over", "accepted"), ("other-person", "not asked"),
        ] { #expect(report.did(name) == did, "\(name)") }
    }
}
