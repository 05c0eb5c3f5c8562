import Foundation
import LLTestSupport
import Testing

@Suite("serve: reload at SIGHUP", .live)
struct ReloadTests {
    @Test("A good file takes effect, a bad one is refused with its reason, and no connection is dropped")
    func reload() throws {
        let issuer = try IssuerProcess()
        let folder = try ShortFolder()
        let own = "\"app_ids\": [\"\(RunningService.appID)\"]"
        let service = try RunningService(
            issuer,
            ["config": try folder.write("settings", "{\(own)}"), "app_ids": nil]
        )
        let client = try BlockingClient(service.address)
        let request = RunningService.login(try issuer.token())
        #expect(client.exchange(request)?.status == 200)

        var reloads = 0
        /// - Parameter message: Of a refusal; nil for a reload that takes effect.
        func hup(_ text: String, refusal message: String? = nil) throws {
            try folder.write("settings", text)
            reloads += message == nil ? 1 : 0
            service.process.signal(SIGHUP)
            let isTold = service.process.waitForErrors(
                message == nil ? reloads : 1,
                of: message ?? "\"configuration reloaded\""
            )
            #expect(isTold, "\(service.process.errorText)")
        }

        try hup("{\"app_ids\": [\"42\"]}")
        #expect(client.exchange(request)?.code == "invalid_audience")
        try hup("{\"app_ids\": ", refusal: "not valid JSON")
        try hup("{\(own), \"workers\": 7}", refusal: "a changed workers takes effect with a restart")
        #expect(client.exchange(request)?.code == "invalid_audience")
        let gateway = "GET /auth HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(try issuer.token())\r\n\r\n"
        #expect(client.exchange(gateway)?.status == 404)
        try hup("{\(own), \"gateway\": \"enabled\"}")
        #expect(client.exchange(gateway)?.status == 200)
        #expect(!service.process.errorText.contains("less strict"))
        try hup("{\(own), \"gateway\": \"enabled\", \"binding\": \"optional\"}")
        #expect(service.process.errorText.contains(#""new":"optional","old":"required","setting":"binding""#))

        let (key, clients) = try folder.clientKey()
        // The warning about a secret file that others can read comes with each reload.
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: clients)
        let guarded = "{\(own), \"client_keys_file\": \"\(clients)\"}"
        try hup(guarded)
        #expect(service.process.waitForError("(mode 0644)"), "\(service.process.errorText)")
        #expect(client.exchange(request)?.code == "unauthorized_client")
        let authorized = request.replacing("Host: test\r\n", with: "Host: test\r\nAuthorization: Bearer \(key)\r\n")
        #expect(client.exchange(authorized)?.status == 200)
        // A reload never takes a protection away, even one that came with an earlier reload, and reads no pipe.
        try hup("{\(own)}", refusal: "would take away client_keys_file")
        try FileManager.default.removeItem(atPath: clients)
        try #require(unsafe mkfifo(clients, 0o600) == 0)
        try hup(guarded, refusal: "not a regular file")
        #expect(client.exchange(request)?.code == "unauthorized_client")
        service.stop()
        #expect(!service.process.errorText.contains(key))
    }

    /// Ways to change a file, each with the folder and the new text.
    enum Change: String, CaseIterable {
        case rename, inPlace, switchedLink

        func make(_ text: String, _ folder: ShortFolder) throws {
            let (manager, file) = (FileManager.default, "\(folder.path)/settings")
            switch self {
            case .rename: try folder.write("settings", text)
            case .inPlace: try Data(text.utf8).write(to: URL(filePath: file))
            // Kubernetes writes the files of a volume so (kubernetes/pkg/volume/util/atomic_writer.go).
            case .switchedLink:
                let name = "..\(UUID().uuidString)"
                let old = try? manager.destinationOfSymbolicLink(atPath: "\(folder.path)/..data")
                try folder.makeFolder(name)
                try folder.write("\(name)/settings", text)
                try manager.createSymbolicLink(atPath: "\(folder.path)/..new", withDestinationPath: name)
                if old == nil { try manager.createSymbolicLink(atPath: file, withDestinationPath: "..data/settings") }
                try #require(unsafe Foundation.rename("\(folder.path)/..new", "\(folder.path)/..data") == 0)
                if let old { try manager.removeItem(atPath: "\(folder.path)/\(old)") }
            }
        }
    }

    @Test("A changed file is a reload, however it was changed; a bad one changes nothing", arguments: Change.allCases)
    func followed(change: Change) throws {
        let issuer = try IssuerProcess()
        let folder = try ShortFolder()
        let own = "{\"app_ids\": [\"\(RunningService.appID)\"]}"
        try change.make(own, folder)
        let settings = ["config": "\(folder.path)/settings", "watch_files": "enabled", "app_ids": nil]
        let service = try RunningService(issuer, settings)
        let client = try BlockingClient(service.address)
        let request = RunningService.login(try issuer.token())
        for round in 1...2 {
            try change.make(#"{"app_ids": ["42"]}"#, folder)
            #expect(service.process.waitForErrors(2 * round - 1, of: "\"configuration reloaded\""))
            #expect(client.exchange(request)?.code == "invalid_audience")
            try change.make("{", folder)
            #expect(service.process.waitForErrors(round, of: "not valid JSON"), "\(service.process.errorText)")
            #expect(client.exchange(request)?.code == "invalid_audience")
            try change.make(own, folder)
            #expect(service.process.waitForErrors(2 * round, of: "\"configuration reloaded\""))
            #expect(client.exchange(request)?.status == 200)
        }
    }

    @Test("A file that was read at the start and is missing at a reload loosens nothing, default or named")
    func lostFile() throws {
        let issuer = try IssuerProcess()
        let folder = try ShortFolder()
        try folder.makeFolder("config")
        let file = "\(folder.path)/config/limited-login.json"
        for named in [nil, file] {
            try folder.write("config/limited-login.json", #"{"replay": "reject"}"#)
            let service = try RunningService(issuer, ["config": named], shell: "cd \(folder.path)")
            let client = try BlockingClient(service.address)
            let request = RunningService.login(try issuer.token())
            #expect(client.exchange(request)?.status == 200)
            #expect(client.exchange(request)?.code == "token_replayed")
            try FileManager.default.removeItem(atPath: file)
            service.process.signal(SIGHUP)
            #expect(service.process.waitForError("config/limited-login.json: the file cannot be read"))
            #expect(client.exchange(request)?.code == "token_replayed")
        }
    }
}
