import Foundation
import LLHTTP
import LLTestSupport
import Testing

/// The notification socket of a service manager.
private final class NotifySocket {
    private let descriptor: Int32
    private let path: String?

    /// - Parameter name: a path, or an abstract name after `@`.
    init(_ name: String) throws {
        path = name.hasPrefix("/") ? name : nil
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(name.utf8)
        // `sun_path` has room for 108 bytes, and the names here are shorter.
        try #require(bytes.count < 108)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        if path == nil { address.sun_path.0 = 0 }
        let length = socklen_t(2 + bytes.count + (path == nil ? 0 : 1))
        let bound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe bind(descriptor, $0, length) }
        }
        try #require(bound == 0)
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
    }

    deinit {
        _ = close(descriptor)
        if let path { try? FileManager.default.removeItem(atPath: path) }
    }

    /// The lines of the next message; empty if none comes in time.
    func next() -> [String] {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).split(separator: "\n").map(String.init)
    }
}

@Suite("serve under a service manager", .live)
struct ServiceManagerTests {
    private static func makeName(_ isAbstract: Bool) -> String {
        let name = "limited-login-notify-\(UUID().uuidString)"
        return isAbstract ? "@\(name)" : FileManager.default.temporaryDirectory.appending(path: name).path
    }

    @Test("The service shows its manager's watchdog that it is alive, if that asks this process")
    func watchdog() throws {
        let name = Self.makeName(true)
        let manager = try NotifySocket(name)
        let environment = ["NOTIFY_SOCKET": name, "WATCHDOG_USEC": "200000"]
        let service = try RunningService(jwksURL: "http://127.0.0.1:1/", environment: environment)
        #expect(manager.next().first == "READY=1")
        for _ in 0..<3 { #expect(manager.next() == ["WATCHDOG=1"]) }
        service.process.end()
        for (variables, pulse) in [
            ([:], nil), (["WATCHDOG_USEC": "x"], nil), (["WATCHDOG_USEC": "30000000"], .seconds(15)),
            (["WATCHDOG_USEC": "2", "WATCHDOG_PID": "1"], nil),
            (["WATCHDOG_USEC": "2", "WATCHDOG_PID": "\(getpid())"], .microseconds(1)),
        ] as [([String: String], Duration?)] {
            #expect(ServiceManager.pulse(variables) == pulse, "\(variables)")
        }
    }

    @Test("The service notifies its manager when it is ready, reloads and stops", arguments: [false, true])
    func states(isAbstract: Bool) throws {
        let name = Self.makeName(isAbstract)
        let manager = try NotifySocket(name)
        let service = try RunningService(jwksURL: "http://127.0.0.1:1/", environment: ["NOTIFY_SOCKET": name])
        #expect(manager.next() == ["READY=1", "STATUS=Listening on \(service.address)"])
        service.process.signal(SIGHUP)
        let reloading = manager.next()
        #expect(reloading.first == "RELOADING=1")
        let time = try #require(reloading.dropFirst().first)
        #expect(UInt64(time.dropFirst("MONOTONIC_USEC=".count)) ?? 0 > 0, "\(time)")
        #expect(manager.next() == ["READY=1", "STATUS=Configuration reloaded"])
        service.process.terminate()
        let stopping = manager.next()
        #expect(stopping.first == "STOPPING=1")
        // There is no drain delay, so the time is 20 s for requests under way and the log.
        #expect(stopping.contains("EXTEND_TIMEOUT_USEC=20000000"), "\(stopping)")
        #expect(service.process.waitForExit() == 0)
    }
}
