import Foundation
import LLTestSupport
import Testing

@Suite("A program that embeds the libraries", .live)
struct EmbeddingTests {
    private static let program = URL(filePath: ServiceProcess.executable).deletingLastPathComponent()
        .appending(path: "embedding-host").path

    @Test(
        "OpenSSL stays usable while the program exits, after each first use: a fetch may still be under way",
        arguments: ["cache", "digest", "mac", "random", "key", "pem", "numbers", "context"]
    )
    func exit(first: String) throws {
        #expect(try ServiceProcess([first], program: Self.program).waitForExit() == 0)
    }
}
