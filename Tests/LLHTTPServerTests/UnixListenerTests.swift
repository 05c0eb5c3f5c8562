import Glibc
import LLHTTP
import LLTestSupport
import Testing

@Suite("A server's Unix socket: its file", .live)
struct UnixListenerTests {
    let folder: ShortFolder
    let path: UnixSocketPath

    init() throws {
        folder = try ShortFolder()
        path = try folder.socketPath()
    }

    func server(mode: UnixSocketMode = .standard, workers: Int = 1) -> HTTPServer {
        var configuration = HTTPServerConfiguration(address: .unix(path), workerCount: workers)
        (configuration.socketMode, configuration.limits) = (mode, .patient)
        return HTTPServer(configuration: configuration) { _ in TestHandler.probe() }
    }

    /// The kind and the permissions of a file; nil if there is no file.
    func mode(_ path: String) -> mode_t? {
        var facts = stat()
        return unsafe lstat(path, &facts) == 0 ? facts.st_mode : nil
    }

    func isSocket(_ path: String) -> Bool { mode(path).map { $0 & S_IFMT == S_IFSOCK } ?? false }

    func status() throws -> Int? { try BlockingClient(path).exchange(plainGet)?.status }

    /// Leaves the socket file of a process that is gone.
    func leaveStale(_ path: UnixSocketPath) throws {
        try Socket.make(for: .unix(path)).bind(to: .unix(path))
        try #require(isSocket(path.description))
    }

    @Test(
        "The file has the requested permissions with any umask, and is removed when the server stops",
        arguments: ["0600", "0660", "0666", "0777"]
    )
    func permissions(text: String) async throws {
        let mode = try #require(UnixSocketMode(text))
        let server = server(mode: mode)
        try server.start()
        #expect(server.localAddress == .unix(path))
        #expect(try #require(self.mode(path.description)) & 0o7777 == mode_t(text, radix: 8))
        #expect(try status() == 200)
        await server.stop(drainDelay: .zero, grace: .seconds(5))
        #expect(self.mode(path.description) == nil)
        #expect(throws: SocketError.self) { try BlockingClient(path) }
    }

    @Test("A socket without a listener is replaced, as after a SIGKILL")
    func stale() async throws {
        try leaveStale(path)
        let server = server()
        try server.start()
        #expect(try status() == 200)
        await server.stop(drainDelay: .zero, grace: .seconds(5))
    }

    @Test("A socket with a listener is reported as in use and left alone")
    func inUse() async throws {
        let first = server()
        try first.start()
        let error = #expect(throws: SocketError.self) { try server().start() }
        #expect(error?.description == "cannot bind to unix:\(path): Address already in use")
        #expect(try status() == 200)
        await first.stop(drainDelay: .zero, grace: .seconds(5))
        let next = server()
        try next.start()
        #expect(try status() == 200)
        next.beginStop(drainDelay: .zero, grace: .zero)
        await next.untilEnded()
        #expect(mode(path.description) == nil)
    }

    @Test(
        "A file that is no socket is reported and left alone",
        arguments: ["a file", "a folder", "a pipe", "a link to nothing", "a link to a socket"]
    )
    func other(kind: String) throws {
        let text = path.description
        let target = try folder.socketPath("target")
        switch kind {
        case "a file": _ = unsafe close(open(text, O_CREAT | O_WRONLY, 0o600))
        case "a folder": _ = unsafe mkdir(text, 0o700)
        case "a pipe": _ = unsafe mkfifo(text, 0o600)
        case "a link to nothing": _ = unsafe symlink(target.description, text)
        default:
            try leaveStale(target)
            _ = unsafe symlink(target.description, text)
        }
        defer { _ = unsafe rmdir(text) }
        let before = try #require(mode(text))
        let error = #expect(throws: SocketError.self) { try server().start() }
        #expect(error?.description == "cannot replace unix:\(text): the file there is no socket, so it is left alone")
        #expect(mode(text) == before)
        if kind == "a link to a socket" { #expect(isSocket(target.description)) }
    }

    @Test(
        "The error names a path at which no file can be made",
        arguments: [
            ("/nonexistent/http.sock", "No such file or directory"), ("/dev/null/http.sock", "Not a directory"),
        ]
    )
    func noPlace(text: String, reason: String) throws {
        let configuration = HTTPServerConfiguration(address: .unix(try UnixSocketPath(text)), workerCount: 1)
        let server = HTTPServer(configuration: configuration) { _ in TestHandler.probe() }
        let error = #expect(throws: SocketError.self) { try server.start() }
        #expect(error?.description == "cannot bind to unix:\(text): \(reason)")
    }

    @Test("A file that has replaced the socket is not removed", arguments: ["a file", "another server"])
    func replaced(by kind: String) async throws {
        let first = server()
        try first.start()
        _ = unsafe unlink(path.description)
        let second = server()
        if kind == "a file" {
            _ = unsafe close(open(path.description, O_CREAT | O_WRONLY, 0o600))
        } else {
            try second.start()
        }
        await first.stop(drainDelay: .zero, grace: .seconds(5))
        #expect(mode(path.description) != nil)
        if kind == "another server" {
            #expect(try status() == 200)
            await second.stop(drainDelay: .zero, grace: .seconds(5))
            #expect(mode(path.description) == nil)
        }
    }
}
