import Foundation
import LLTestSupport
import Testing

@Suite("check-config: values with their origin, mistakes and warnings", .live)
struct CheckConfigTests {
    private static let required = ["app_ids": RunningService.appID]

    @Test("check-config prints every value with its origin, or all mistakes; --json gives one object with warnings")
    func values() throws {
        let plain = try FinishedRun(["check-config", "--workers", "3"], environment: Self.required)
        for text in ["environment variable LIMITED_LOGIN_APP_IDS", "(--workers)", "(default)"] {
            #expect(plain.output.contains(text))
        }
        let folder = try ShortFolder()
        let file = try folder.write("settings", #"{"auth_headers": []}"#)
        let empty = try FinishedRun(["check-config", "--config", file], environment: Self.required)
        #expect(empty.output.contains("X-Auth-Email=email  (default)"), "an empty list is shown as the default list")
        let odd = ["app_ids": "1", "binding": "optional", "replay_store": "redis://:geheim@redis.example:6379"]
        let run = try FinishedRun(["check-config", "--json", "--workers", "3"], environment: odd)
        #expect(run.exitCode == 0 && run.errors.isEmpty && !run.output.contains("geheim"), "\(run.errors)")
        let object = try run.object
        let settings = try #require(object["settings"] as? [String: [String: String]])
        #expect(settings["workers"] == ["value": "3", "origin": "--workers"])
        #expect(settings["binding"] == ["value": "optional", "origin": "environment variable LIMITED_LOGIN_BINDING"])
        let warnings = try #require(object["warnings"] as? [String])
        for words in ["binding is optional", "rediss://"] { #expect(warnings.contains { $0.contains(words) }) }

        // The mistakes of settings come before those of their files.
        let bad = try folder.write("bad", "one\n")
        let files = ["--client-keys-file", "--nonce-secret-file", "--app-secrets-file", "--ca-file"]
        let arguments = ["check-config"] + files.flatMap { [$0, bad] }
        for (more, count) in [(["--workers", "0", "--gateway", "on"], 2), ([], files.count)] {
            let run = try FinishedRun(arguments + more, environment: Self.required)
            let sentences = run.errors.split(separator: "\n").map { String($0.dropFirst("limited-login: ".count)) }
            #expect(run.exitCode == 78 && sentences.count == count, "\(run.errors)")
            let object = try FinishedRun(arguments + more + ["--json"], environment: Self.required)
            let mistakes = try object.object["mistakes"] as? [String]
            #expect(object.exitCode == 78 && object.errors.isEmpty && mistakes == sentences)
        }
    }

    @Test("The file in the working directory is read, but not one that other users may have placed, unless it is named")
    func workingDirectory() throws {
        let own = try FinishedRun(["check-config"], environment: Self.required, directory: ProjectFiles.root)
        #expect(own.output.contains("(config/limited-login.json: issuers)"), "\(own.errors)")
        let folder = try ShortFolder()
        try folder.makeFolder("config")
        let file = try folder.write("config/limited-login.json", #"{"app_ids": ["42"]}"#)
        let (user, group) = (Int(geteuid()), Int(getegid()))
        // The mode, the owner and the group of the file, and the reason for the refusal.
        var table: [(Int, Int, Int, String?)] = [
            (0o600, user, group, nil), (0o644, user, group, nil), (0o666, user, group, "others can change it"),
        ]
        if user == 0 {
            table += [
                (0o664, 0, 0, nil), (0o664, 0, 65_534, "others can change it"), (0o640, 0, 65_534, nil),
                (0o600, 65_534, 65_534, "it belongs to another user"),
            ]
        }
        for (mode, owner, group, reason) in table {
            var attributes: [FileAttributeKey: Any] = [.posixPermissions: mode]
            if user == 0 { (attributes[.ownerAccountID], attributes[.groupOwnerAccountID]) = (owner, group) }
            try FileManager.default.setAttributes(attributes, ofItemAtPath: file)
            let run = try FinishedRun(["check-config"], directory: folder.path)
            let words = reason ?? "(config/limited-login.json: app_ids)"
            #expect(run.exitCode == (reason == nil ? 0 : 78), "\(run.errors)")
            #expect((run.output + run.errors).contains(words), "\(run.errors)")
            let named = ["check-config", "--config", "config/limited-login.json"]
            #expect(try FinishedRun(named, directory: folder.path).exitCode == 0)
        }
    }
}
