import Dispatch
import Glibc
import LLHTTPServer
import LLSockets
import LLTestSupport
import Synchronization
import Testing

@Suite("A server's Unix socket: its file", .live)
struct UnixListenerTests {
    static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    let folder: ShortFolder
    let path: UnixSocketPath

    init() throws {
        folder = try ShortFolder()
        path = try folder.socketPath()
    }

    func server(mode: UnixSocketMode = .standard, workers: Int = 1) -> HTTPServer {
        HTTPServer(
            configuration: HTTPServerConfiguration(addresses: [.unix(path)], socketMode: mode, workerCount: workers)
        ) { _ in TestHandler.probe() }
    }

    /// The kind and the permissions of a file; nil if there is no file.
    func mode(_ path: String) -> mode_t? {
        var facts = stat()
        return unsafe lstat(path, &facts) == 0 ? facts.st_mode : nil
    }

    func isSocket(_ path: String) -> Bool { mode(path).map { $0 & S_IFMT == S_IFSOCK } ?? false }

    func status() throws -> Int? { try BlockingClient(path).exchange(Self.get)?.status }

    /// Leaves the socket file of a process that is gone.
    func leaveStale(_ path: UnixSocketPath) throws {
        let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { _ = close(number) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.description.utf8)
        // A path of at most 107 bytes is copied into 108 zero bytes.
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        let isBound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        try #require(isBound && isSocket(path.description))
    }

    /// Starts the servers at once, each on its own thread; returns the number of those that started.
    private func startAtOnce(_ servers: [HTTPServer]) -> Int {
        let started = Atomic<Int>(0)
        DispatchQueue.concurrentPerform(iterations: servers.count) { index in
            do {
                try servers[index].start()
                started.wrappingAdd(1, ordering: .relaxed)
            } catch {}
        }
        return started.load(ordering: .relaxed)
    }

    @Test(
        "The file has the requested permissions with any umask, and is removed when the server stops",
        arguments: ["0600", "0660", "0666", "0777"]
    )
    func permissions(text: String) async throws {
        let mode = try #require(UnixSocketMode(text))
        let server = server(mode: mode)
        try server.start()
        #expect(server.localAddresses == [.unix(path)])
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
            ("/nonexistent/http.sock", "cannot lock", "No such file or directory"),
            ("/dev/null/http.sock", "cannot lock", "Not a directory"),
            ("/proc/http.sock", "cannot lock", ""),
        ]
    )
    func noPlace(text: String, operation: String, reason: String) throws {
        let server = HTTPServer(
            configuration: HTTPServerConfiguration(addresses: [.unix(try UnixSocketPath(text))], workerCount: 1)
        ) { _ in TestHandler.probe() }
        let error = #expect(throws: SocketError.self) { try server.start() }
        #expect(error?.description.hasPrefix("\(operation) unix:\(text): ") == true, "\(error?.description ?? "")")
        #expect(error?.description.hasSuffix(reason) == true, "\(error?.description ?? "")")
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

    @Test("A server may also listen on a port, and stops on both", arguments: [1, 2])
    func besidePort(workers: Int) async throws {
        let server = HTTPServer(
            configuration: HTTPServerConfiguration(
                addresses: [.unix(path), .loopback(port: 0)],
                workerCount: workers
            )
        ) { _ in TestHandler.probe() }
        try server.start()
        #expect(server.localAddresses.count == 2)
        for address in server.localAddresses {
            #expect(try BlockingClient(address).exchange(Self.get)?.status == 200)
        }
        #expect(await server.stop(drainDelay: .zero, grace: .seconds(5)) == 0)
        for address in server.localAddresses {
            #expect(throws: SocketError.self) { try BlockingClient(address) }
        }
    }

    @Test("Services that start at once on different paths in one directory all start")
    func besideEachOther() throws {
        let servers = try (0..<16).map { number in
            HTTPServer(
                configuration: HTTPServerConfiguration(
                    addresses: [try folder.socketAddress("\(number)")],
                    workerCount: 1
                )
            ) { _ in TestHandler.probe() }
        }
        let started = startAtOnce(servers)
        #expect(started == servers.count)
        for server in servers { server.beginStop(drainDelay: .zero, grace: .zero) }
        for server in servers { server.waitUntilEnded() }
    }

    @Test("While another start holds the lock, a start fails")
    func locked() throws {
        // Without O_CLOEXEC a process that another test starts meanwhile would keep the lock.
        let file = unsafe open("\(path).lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(flock(file, LOCK_EX) == 0)
        let error = #expect(throws: SocketError.self) { try server().start() }
        #expect(error?.description.hasPrefix("cannot lock unix:\(path): ") == true)
        _ = close(file)
        let unlocked = server()
        try unlocked.start()
        unlocked.beginStop(drainDelay: .zero, grace: .zero)
        #expect(mode("\(path).lock") == nil)
    }

    @Test("A lock on the directory, which any of its readers can take, keeps no service from starting")
    func lockedDirectory() async throws {
        let directory = unsafe open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { _ = close(directory) }
        try #require(flock(directory, LOCK_EX) == 0)
        let server = server()
        try server.start()
        #expect(try status() == 200)
        await server.stop(drainDelay: .zero, grace: .seconds(5))
    }

    @Test(
        "A lock file that is not a file of this user is refused and left alone",
        arguments: ["a link", "a folder", "another's"]
    )
    func foreignLock(kind: String) throws {
        let name = "\(path).lock"
        switch kind {
        case "a link": try #require(unsafe symlink("/dev/null", name) == 0)
        case "a folder": try #require(unsafe mkdir(name, 0o700) == 0)
        default:
            _ = close(unsafe open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0o666))
            // Only root can give a file away.
            guard unsafe chown(name, 65_534, 65_534) == 0 else { return }
        }
        let error = #expect(throws: SocketError.self) { try server().start() }
        #expect(error?.description.hasPrefix("cannot lock unix:\(path): ") == true, "\(error?.description ?? "")")
        #expect(mode(name) != nil)
        _ = unsafe rmdir(name)
    }

    @Test("If several servers start at once on a stale socket, one serves and the others are refused")
    func startingAtOnce() async throws {
        for _ in 0..<20 {
            try leaveStale(path)
            let servers = (0..<4).map { _ in server() }
            let started = startAtOnce(servers)
            // The server that has the lock must go on: not all of them may be refused.
            #expect(started == 1)
            #expect(try status() == 200)
            for server in servers { await server.stop(drainDelay: .zero, grace: .seconds(5)) }
            #expect(mode(path.description) == nil)
        }
    }
}
