import Foundation
import LLHTTP
import LLTestSupport
import Testing

@Suite("serve on a Unix socket", .live)
struct UnixSocketTests {
    let folder: ShortFolder
    let path: String

    init() throws {
        folder = try ShortFolder()
        path = try folder.socketPath().description
    }

    /// A service with a key source that is down: the requests of these tests need no keys.
    func service(_ environment: [String: String] = [:]) throws -> RunningService {
        try RunningService(
            jwksURL: "http://127.0.0.1:1/",
            environment: ["LIMITED_LOGIN_LISTEN": "unix:\(path)"].merging(environment) { $1 }
        )
    }

    func curl(_ arguments: [String]) throws -> FinishedRun {
        try FinishedRun(["-sS", "--max-time", "20", "--unix-socket", path] + arguments, program: "/usr/bin/curl")
    }

    private func permissions() throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    @Test("curl is served and keeps its connection; the log names the socket, and its file is removed at the stop")
    func curl() throws {
        let service = try service()
        #expect(service.listenAddress == .unix(try folder.socketPath()))
        #expect(try permissions() == 0o660)
        let url = "http://localhost/livez"
        let two = try curl(["-w", "%{http_code} %{num_connects} ", url, url])
        #expect(two.output.contains("200 1 ") && two.output.contains("200 0 "), "\(two.output) \(two.errors)")
        // The administrative listener is still on its own port.
        #expect(try service.get("/livez", admin: true).status == 200)
        #expect(try service.get("/metrics", admin: true).text.contains("\nhttp_server_connections{"))
        service.process.terminate()
        #expect(service.process.waitForExit() == 0)
        #expect(!FileManager.default.fileExists(atPath: path))
        #expect(try curl([url]).exitCode == 7)
    }
}
