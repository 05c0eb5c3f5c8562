import FoundationEssentials
import LLHTTP
import LLTestSupport
import LimitedLoginHTTPS
import Testing

@testable import LimitedLoginKeys

@Suite("Memory", .live, .enabled(if: !Sanitizer.isActive, "a sanitizer's own memory would be measured"))
struct MemoryTests {
    @Test("A 1 GB body and endless chunks cost less than 1 MB, measured in a process of its own")
    func hugeBodies() async {
        await #expect(processExitsWith: .success) {
            let certificates = try TestCertificates.shared.get()
            let issuer = try ScriptedIssuer(.tls(certificates.good)) { request, peer in
                let isChunked = request.number % 2 == 0
                let head = "HTTP/1.1 200 OK\r\n" + (isChunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n")
                let space = [UInt8](repeating: 0x20, count: 65_536)
                let piece = isChunked ? Array("10000\r\n".utf8) + space + Array("\r\n".utf8) : space
                try peer.repeatPiece(piece, head: head, total: 1 << 30)
            }
            let source = try HTTPSJWKSetSource(
                url: issuer.url,
                authoritiesFile: certificates.authorityFile,
                proxy: .none,
                limits: .init()
            )
            func fetch(times: Int) {
                for _ in 0..<times { _ = try? source.fetch(validator: nil) }
            }
            // The first fetches allocate memory that stays: threads, OpenSSL's tables, the allocator's arenas.
            fetch(times: 20)
            let before = try MemoryTests.residentBytes()
            fetch(times: 40)
            let growth = try MemoryTests.residentBytes() - before
            issuer.stop()
            #expect(issuer.requestCount == 60)
            #expect(growth < 1 << 20)
        }
    }

    /// The process's anonymous resident memory.
    static func residentBytes() throws -> Int {
        let text = try String(contentsOf: URL(filePath: "/proc/self/status"), encoding: .utf8)
        for line in text.split(separator: "\n") where line.hasPrefix("RssAnon:") {
            if let kibibytes = line.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) {
                return kibibytes * 1024
            }
            if let number = Int(line.filter(\.isNumber)) { return number * 1024 }
        }
        throw TestSupportError("no RssAnon")
    }
}
