import Foundation
import LLTestSupport
import Testing

/// A library that counts heap allocations when it is preloaded into a program, compiled by the system's C compiler.
private struct AllocationCounter {
    static let source = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../Benchmarks/Sources/AllocationCounter/counter.c").standardizedFileURL.path
    static let compiler = "/usr/bin/cc"

    /// False under a sanitizer, which brings its own `malloc`.
    static var isUsable: Bool {
        FileManager.default.isExecutableFile(atPath: compiler) && FileManager.default.fileExists(atPath: source)
            && ProcessInfo.processInfo.environment["SANITIZER"] == nil
    }

    let folder: URL
    var library: String { folder.appending(path: "counter.so").path }

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "allocations-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let made = try FinishedRun(["-O1", "-shared", "-fPIC", "-o", library, Self.source], program: Self.compiler)
        try #require(made.exitCode == 0, "\(made.errors)")
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }

    /// The allocations of a service that answers this number of requests and ends: all of them, and libcrypto's.
    func count(_ requests: Int, _ request: String, jwksURL: String) throws -> (all: Int, libcrypto: Int) {
        let file = folder.appending(path: "count").path
        try? FileManager.default.removeItem(atPath: file)
        let environment = ["LD_PRELOAD": library, "ALLOCATION_COUNT_FILE": file, "LIMITED_LOGIN_WORKERS": "1"]
        let service = try RunningService(jwksURL: jwksURL, environment: environment)
        defer { service.process.end() }
        try #require(try service.waitUntilReady())
        let client = try BlockingClient(service.address)
        for _ in 0..<requests {
            let answer = try #require(client.exchange(request))
            try #require(answer.status == 200, "\(answer.text)")
        }
        service.process.terminate()
        #expect(service.process.waitForExit() == 0)
        let counts = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").compactMap { Int($0) }
        try #require(counts.count == 2)
        return (counts[0], counts[1])
    }
}

@Suite(
    "Heap allocations of POST /verify",
    .live,
    .enabled(if: AllocationCounter.isUsable, "needs cc, and no sanitizer")
)
struct AllocationTests {
    /// Allocations of one request outside libcrypto. Optimised code makes none, which `Tests/Benchmarks/instructions`
    /// checks too; unoptimised code boxes some 130 values, and this bound covers them.
    #if DEBUG
    static let ours = 132
    #else
    static let ours = 0
    #endif
    /// Allocations inside libcrypto: 12 in `EVP_PKEY_verify` and two in `EVP_Digest`.
    /// Later releases of OpenSSL 3 make fewer.
    static let libcrypto = 14

    @Test("An accepted token costs no allocation outside OpenSSL's verification")
    func accepted() throws {
        let counter = try AllocationCounter()
        defer { counter.remove() }
        let issuer = try IssuerProcess()
        defer { issuer.process.end() }
        let token = try issuer.token(#"{"nonce":"n-0S6_WzA2MjQ9xT","name":"Jane Doe","email":"jane@example.com"}"#)
        let request = RunningService.request("{\"id_token\":\"\(token)\",\"nonce\":\"n-0S6_WzA2MjQ9xT\"}")
        let few = try counter.count(100, request, jwksURL: issuer.jwksURL)
        let many = try counter.count(4_100, request, jwksURL: issuer.jwksURL)
        let libcrypto = Double(many.libcrypto - few.libcrypto) / 4_000
        let ours = Double(many.all - few.all) / 4_000 - libcrypto
        // The allocations of start and stop differ between runs by at most about 600; half an allocation per request
        // is 2,000.
        #expect(ours < Double(Self.ours) + 0.5)
        #expect(libcrypto < Double(Self.libcrypto) + 0.5)
        // The test must fail if the counter counts nothing.
        #expect(libcrypto > 0)
    }
}
