import Foundation
import Sockets
import TestSupport
import Testing

@Suite("The command line: exit codes and sentences", .live)
struct CommandLineTests {
    private static let required = ["LIMITED_LOGIN_APP_IDS": RunningService.appID]

    @Test(
        "A start that cannot be is one sentence on standard error and exit code 78",
        arguments: [
            ([:], [], "LIMITED_LOGIN_APP_IDS"),
            (["LIMITED_LOGIN_APP_ID": "1"], [], "LIMITED_LOGIN_APP_ID"),
            (["LIMITED_LOGIN_APP_IDS": "1", "LIMITED_LOGIN_WORKERS": "0"], [], "LIMITED_LOGIN_WORKERS"),
            (["LIMITED_LOGIN_APP_IDS": "1"], ["--config", "/nonexistent.json"], "/nonexistent.json"),
            (["LIMITED_LOGIN_APP_IDS": "1"], ["--listen", "nowhere"], "--listen"),
            (["LIMITED_LOGIN_APP_IDS": ""], [], "the value is empty"),
            (["LIMITED_LOGIN_APP_IDS": "1"], ["--ca-file", "/nonexistent"], "ca_file: /nonexistent: the file"),
            (["LIMITED_LOGIN_APP_IDS": "1"], ["--ca-file", "/etc/passwd"], "ca_file: TLS cannot be set up"),
            (["LIMITED_LOGIN_APP_IDS": "1"], ["--listen", "unix:http.sock"], "must begin with '/'"),
            (["LIMITED_LOGIN_APP_IDS": "1"], ["--admin-listen", "unix:/tmp/a.sock"], "address and port alone"),
            (["LIMITED_LOGIN_APP_IDS": "1"], ["--listen-mode", "0600"], "--listen-mode"),
            (
                ["LIMITED_LOGIN_APP_IDS": "1"],
                ["--listen", "unix:/nonexistent/http.sock", "--admin-listen", "127.0.0.1:0"],
                "unix:/nonexistent/http.sock: No such file or directory"
            ),
        ] as [([String: String], [String], String)]
    )
    func configuration(environment: [String: String], arguments: [String], names: String) throws {
        let run = try FinishedRun(["serve"] + arguments, environment: environment)
        #expect(run.exitCode == 78)
        #expect(run.errors.contains(names), "\(run.errors)")
        #expect(run.errors.split(separator: "\n").count { $0.hasPrefix("limited-login: ") } == 1, "\(run.errors)")
        #expect(run.output.isEmpty)
    }

    @Test("An address that cannot be had is named with its flag, and the exit code says that it may pass")
    func addressUnavailable() throws {
        let holder = try Socket.listener(on: .loopback(port: 0), backlog: 1, sharesPort: false)
        let taken = "\(try holder.localAddress())"
        for (flag, address) in [("--listen", taken), ("--admin-listen", taken), ("--listen", "192.0.2.1:8080")] {
            let other = flag == "--listen" ? "--admin-listen" : "--listen"
            let run = try FinishedRun(["serve", flag, address, other, "127.0.0.1:0"], environment: Self.required)
            #expect(run.exitCode == 75)
            let told = try #require(run.errors.split(separator: "\n").last)
            #expect(
                told.contains("cannot bind to \(address)") || told.contains("cannot listen on \(address)"),
                "\(told)"
            )
            #expect(told.hasSuffix("choose another address with \(flag)"), "\(told)")
            #expect(run.errors.ranges(of: "trying on").count == 1)
        }
        for flag in ["--listen", "--admin-listen", "--issuer-listen"] {
            let free = ["--listen", "--admin-listen", "--issuer-listen"].filter { $0 != flag }
            let demo = try FinishedRun(["demo", flag, taken] + free.flatMap { [$0, "127.0.0.1:0"] })
            #expect(demo.exitCode == 75)
            #expect(demo.errors.contains("choose another address with \(flag)\n"), "\(demo.errors)")
        }
    }

    @Test("Two services cannot share one port by accident")
    func samePortTwice() throws {
        let first = try RunningService(jwksURL: "http://127.0.0.1:1/")
        let run = try FinishedRun(
            ["serve", "--listen", "\(first.address)", "--admin-listen", "127.0.0.1:0"],
            environment: Self.required
        )
        #expect(run.exitCode == 75)
        #expect(run.errors.contains("in use"), "\(run.errors)")
    }

    @Test("A folder that cannot be written to is named, in a sentence")
    func unwritableFolder() throws {
        let run = try FinishedRun(["catalogue", "--out", "/dev/null"])
        #expect(run.exitCode == 78)
        #expect(run.errors.contains("cannot be written") && !run.errors.contains("CocoaError"), "\(run.errors)")
        let ports = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--issuer-listen", "127.0.0.1:0"]
        let demo = try FinishedRun(["demo"] + ports, environment: ["TMPDIR": "/dev/null"])
        #expect(demo.exitCode == 78)
        #expect(demo.errors.contains("/dev/null cannot be written; set TMPDIR"), "\(demo.errors)")
    }

    @Test(
        "A usage mistake is 64, and 2 for verify",
        arguments: [
            (["brew"], 64), (["serve", "--unknown"], 64), (["issuer", "--listen", "0.0.0.0:0"], 64),
            (["issuer", "--listen", "unix:/tmp/a.sock"], 64), (["demo", "--listen", "unix:/tmp/a.sock"], 64),
            (["demo", "--listen", "0.0.0.0:0"], 64), (["demo", "--admin-listen", "0.0.0.0:0"], 64),
            (["verify"], 2), (["verify", "t"], 2), (["verify", "t", "--nonce", "n", "--unbound"], 2),
            (["verify", "t", "--unbound", "--at", "noon"], 2),
            (["verify", "t", "--unbound", "--at", "2023-02-29T12:00:00Z"], 2),
            (["verify", "t", "--unbound", "--at", "2024-04-31T12:00:00+01:00"], 2),
            (["verify", "t", "--unbound", "--at", "2024-01-31T12:60:00Z"], 2),
            (["verify", "t", "--unbound", "--at", "1969-12-31T23:59:59Z"], 2),
            (["verify", "t", "--unbound", "--at", "1970-01-01T00:00:00+01:00"], 2),
            (["verify", "t", "--unknown"], 2),
        ] as [([String], Int32)]
    )
    func usage(arguments: [String], exitCode: Int32) throws {
        let run = try FinishedRun(arguments, environment: Self.required)
        #expect(run.exitCode == exitCode, "\(run.errors)")
        #expect(!run.errors.isEmpty)
    }

    @Test(
        "Help is printed for the program and for each command",
        arguments: [
            [], ["serve"], ["demo"], ["issuer"], ["verify"], ["keys"], ["check-config"], ["healthcheck"],
            ["permissions"], ["permissions", "list"], ["permissions", "revoke"], ["dpop"], ["dpop", "judge"],
            ["dpop", "make"],
        ]
    )
    func help(command: [String]) throws {
        let run = try FinishedRun(command + ["--help"])
        #expect(run.exitCode == 0)
        #expect(run.output.contains("USAGE: limited-login"))
    }

    @Test("check-config prints every value with its origin, and says 78 to a bad one")
    func checkConfig() throws {
        let run = try FinishedRun(["check-config", "--workers", "3"], environment: Self.required)
        #expect(run.exitCode == 0, "\(run.errors)")
        #expect(run.output.contains("environment variable LIMITED_LOGIN_APP_IDS"))
        #expect(run.output.contains("(--workers)"))
        #expect(run.output.contains("(default)"))
        let folder = try ShortFolder()
        try Data(#"{"auth_headers": []}"#.utf8).write(to: URL(filePath: "\(folder.path)/file"))
        let empty = try FinishedRun(["check-config", "--config", "\(folder.path)/file"], environment: Self.required)
        #expect(empty.output.contains("X-Auth-Email=email  (default)"), "an empty list is shown as what is in force")
        let bad = try FinishedRun(["check-config"], environment: ["LIMITED_LOGIN_BINDING": "no"])
        #expect(bad.exitCode == 78)
    }

    @Test("An app id that is no number is taken, with a warning: by check-config, at the start and at a reload")
    func oddAppID() throws {
        let odd = "The app id 'my-app' is no decimal number"
        let checked = try FinishedRun(["check-config"], environment: ["LIMITED_LOGIN_APP_IDS": "42,my-app"])
        #expect(checked.exitCode == 0)
        #expect(checked.errors.contains(odd))
        #expect(try !FinishedRun(["check-config"], environment: Self.required).errors.contains("warning"))
        let oddly = ["LIMITED_LOGIN_APP_IDS": "my-app"]
        let service = try RunningService(jwksURL: "http://127.0.0.1:1/", environment: oddly)
        #expect(service.process.waitForError(odd))
        service.process.signal(SIGHUP)
        #expect(service.process.waitForErrors(2, of: odd))
    }

    @Test("check-config reads the file in the working directory")
    func defaultFile() throws {
        let run = try FinishedRun(["check-config"], environment: Self.required, directory: ProjectFiles.root)
        #expect(run.exitCode == 0, "\(run.errors)")
        #expect(run.output.contains("(config/limited-login.json: issuers)"))
    }

    @Test("A configuration that others planted in the working directory is refused, unless it is named")
    func plantedFile() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "planted-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "config/limited-login.json")
        let directory = file.deletingLastPathComponent()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try Data(#"{"app_ids": ["42"]}"#.utf8).write(to: file)
        let (user, group) = (Int(geteuid()), Int(getegid()))
        // The mode, the owner and the group; the reason of the refusal.
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

    @Test("healthcheck says 0 for a service that is well, 1 for one that is not there or not ready")
    func healthcheck() throws {
        let service = try RunningService(jwksURL: "http://127.0.0.1:1/")
        let environment = Self.required.merging(
            ["LIMITED_LOGIN_ADMIN_LISTEN": "\(service.adminAddress)"]
        ) { $1 }
        #expect(try FinishedRun(["healthcheck"], environment: environment).exitCode == 0)
        #expect(try FinishedRun(["healthcheck", "--ready"], environment: environment).exitCode == 1)
        service.process.kill()
        let gone = try FinishedRun(["healthcheck"], environment: environment)
        #expect(gone.exitCode == 1)
        #expect(gone.errors.contains("/livez"))
        let anywhere = try FinishedRun(["healthcheck", "--admin-listen", "127.0.0.1:0"], environment: environment)
        #expect(anywhere.exitCode == 78 && anywhere.errors.contains("admin_listen: "), "\(anywhere.errors)")
    }
}
