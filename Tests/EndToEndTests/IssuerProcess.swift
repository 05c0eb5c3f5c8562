import Foundation
import LLHTTP
import LLTestSupport
import Testing

/// `limited-login issuer` on a free port, and a client for it.
final class IssuerProcess {
    let process: ServiceProcess
    let address: SocketAddress

    init(arguments: [String] = []) throws {
        process = try ServiceProcess(["issuer", "--listen", "127.0.0.1:0"] + arguments)
        try #require(process.waitForOutput("/rotate"), "\(process.errorText)")
        address = try #require(
            RunningService.address(after: "stand-in issuer on http://", in: process.outputText).network
        )
    }

    /// The process ends with this value, so that a test keeps it for as long as it is needed.
    deinit { process.end() }

    var jwksURL: String { "http://\(address)/.well-known/oauth/openid/jwks/" }

    func exchange(_ request: String) throws -> TestResponse {
        try #require(try BlockingClient(address).exchange(request))
    }

    func post(_ path: String, _ body: String = "") throws -> TestResponse {
        try exchange("POST \(path) HTTP/1.1\r\nHost: issuer\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }

    /// Mints a token.
    func token(_ claims: String = #"{"nonce":"n-1"}"#) throws -> String {
        let text = try post("/tokens", claims).text
        return String(try #require(text.split(separator: "\"").dropFirst(3).first))
    }
}
