import Foundation
import LLTestSupport
import Testing

@Suite("check-config: values with their origin, mistakes and warnings", .live)
struct CheckConfigTests {
    private static let required = ["LIMITED_LOGIN_APP_IDS": RunningService.appID]

    @Test("check-config prints every value with its origin, and exits with 78 for a bad one")
    func checkConfig() throws {
        let run = try FinishedRun(["check-config", "--workers", "3"], environment: Self.required)
        #expect(run.exitCode == 0, "\(run.errors)")
        #expect(run.output.contains("environment variable LIMITED_LOGIN_APP_IDS"))
        #expect(run.output.contains("(--workers)"))
        #expect(run.output.contains("(default)"))
        let folder = try ShortFolder()
        try Data(#"{"auth_headers": []}"#.utf8).write(to: URL(filePath: "\(folder.path)/file"))
        let empty = try FinishedRun(["check-config", "--config", "\(folder.path)/file"], environment: Self.required)
        #expect(empty.output.contains("X-Auth-Email=email  (default)"), "an empty list is shown as the default list")
        let bad = try FinishedRun(["check-config"], environment: ["LIMITED_LOGIN_BINDING": "no"])
        #expect(bad.exitCode == 78)
    }

    @Test("check-config --json shows each setting with its origin, the warnings, and no password")
    func checkConfigAsJSON() throws {
        let odd = [
            "LIMITED_LOGIN_APP_IDS": "my-app", "LIMITED_LOGIN_REPLAY_STORE": "redis://:geheim@redis.example:6379",
        ]
        let run = try FinishedRun(["check-config", "--json", "--workers", "3"], environment: odd)
        #expect(run.exitCode == 0, "\(run.errors)")
        #expect(run.errors.isEmpty && !run.output.contains("geheim"))
        let object = try #require(try JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any])
        let settings = try #require(object["settings"] as? [String: [String: String]])
        #expect(settings["workers"] == ["value": "3", "origin": "--workers"])
        #expect(settings["app_ids"] == ["value": "my-app", "origin": "environment variable LIMITED_LOGIN_APP_IDS"])
        #expect(settings["binding"] == ["value": "required", "origin": "default"])
        let warnings = try #require(object["warnings"] as? [String])
        #expect(warnings.contains { $0.contains("'my-app'") } && warnings.contains { $0.contains("rediss://") })
    }

    @Test("check-config reads the file in the working directory")
    func defaultFile() throws {
        let run = try FinishedRun(["check-config"], environment: Self.required, directory: ProjectFiles.root)
        #expect(run.exitCode == 0, "\(run.errors)")
        #expect(run.output.contains("(config/limited-login.json: issuers)"))
    }

    @Test("A configuration that other users may have placed in the working directory is refused, unless it is named")
    func plantedFile() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "planted-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "config/limited-login.json")
        let directory = file.deletingLastPathComponent()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try Data(#"{"app_ids": ["42"]}"#.utf8).write(to: file)
        let (user, group) = (Int(geteuid()), Int(getegid()))
        // The mode, the owner and the group of the file, and the reason for the refusal.
        var table: [(Int, Int, Int, String?)] = [
            (0o600, user, group, nil), (0o644, user, group, nil), (0o666, user, group, "others can change it"),
        ]
        if user == 0 {
            table += [
                (0o664, 0, 0, nil), (0o664, 0, 65_534, "others can change it"), (0o640, 0, 65_534, nil),
                (0o600, 65_534, 65_534, "it belongs to another user"),
                (0o666, 65_534, 65_534, "it belongs to another user"),
            ]
        }
        for (mode, owner, group, reason) in table {
            let attributes: [FileAttributeKey: Any] =
                user == 0 ? [.ownerAccountID: owner, .groupOwnerAccountID: group] : [:]
            try FileManager.default.setAttributes(
                attributes.merging([.posixPermissions: mode]) { $1 },
                ofItemAtPath: file.path
            )
            let run = try FinishedRun(["check-config"], environment: [:], directory: folder.path)
            if let reason {
                #expect(run.exitCode == 78 && run.errors.contains("config/limited-login.json: "), "\(run.errors)")
                #expect(run.errors.contains(reason), "\(run.errors)")
            } else {
                #expect(
                    run.exitCode == 0 && run.output.contains("(config/limited-login.json: app_ids)"),
                    "\(run.errors)"
                )
            }
            for named in [["--config", "config/limited-login.json"], ["--config", file.path]] {
                #expect(
                    try FinishedRun(["check-config"] + named, environment: [:], directory: folder.path).exitCode == 0
                )
            }
        }
    }

    @Test("check-config reports all mistakes, first of settings, then of their files; --json gives one object")
    func allMistakes() throws {
        let folder = try ShortFolder()
        try Data("one\n".utf8).write(to: URL(filePath: "\(folder.path)/bad"))
        let files = ["--client-keys-file", "--nonce-secret-file", "--app-secrets-file", "--ca-file"]
        let arguments = ["check-config"] + files.flatMap { [$0, "\(folder.path)/bad"] }
        for (more, count) in [(["--workers", "0", "--gateway", "on"], 2), ([], files.count)] {
            let run = try FinishedRun(arguments + more, environment: Self.required)
            let sentences = run.errors.split(separator: "\n").map { String($0.dropFirst("limited-login: ".count)) }
            #expect(run.exitCode == 78 && sentences.count == count, "\(run.errors)")
            let object = try FinishedRun(arguments + more + ["--json"], environment: Self.required)
            let parsed = try JSONSerialization.jsonObject(with: Data(object.output.utf8)) as? [String: [String]]
            #expect(object.exitCode == 78 && object.errors.isEmpty && parsed == ["mistakes": sentences])
        }
    }
}
