import Foundation
import LimitedLogin
import LimitedLoginKeys
import Testing

@testable import app

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The program `limited-login issuer` as Facebook, for the tests of a backend in Swift. `LIMITED_LOGIN` names the program.
final class PlayedFacebook {
    let url: URL
    private let process = Process()

    init() throws {
        let output = Pipe()
        process.executableURL = URL(filePath: ProcessInfo.processInfo.environment["LIMITED_LOGIN"] ?? "")
        process.arguments = ["issuer", "--listen", "127.0.0.1:0", "--seed", "1"]
        process.standardOutput = output
        try process.run()
        var said = ""
        while !said.contains("JWK Set:"), case let data = output.fileHandleForReading.availableData, !data.isEmpty {
            said += String(decoding: data, as: UTF8.self)
        }
        let address = try #require(said.firstMatch(of: /stand-in issuer on (\S+)/))
        url = try #require(URL(string: String(address.1)))
    }

    func end() { process.terminate() }

    /// The id token of a login with this nonce.
    func token(nonce: String) async throws -> String {
        var request = URLRequest(url: url.appending(path: "tokens"))
        request.httpMethod = "POST"
        request.httpBody = try JSONEncoder().encode(["nonce": nonce, "name": "Jane Doe"])
        let (data, _) = try await URLSession.shared.data(for: request)
        return try #require(try JSONDecoder().decode([String: String].self, from: data)["id_token"])
    }
}

@Test("A login is judged with the keys of the played Facebook; a stolen token is refused")
func playedFacebook() async throws {
    let facebook = try PlayedFacebook()
    defer { facebook.end() }
    let keys = try makeKeys(url: "\(facebook.url)/.well-known/oauth/openid/jwks/")
    keys.start()
    let verifier = try makeVerifier(appID: "123456789012345", keys: keys)
    let logins = LoginNonces()
    let token = try await facebook.token(nonce: logins.begin("owner").value)
    _ = logins.begin("thief")
    await #expect(throws: Rejection.self) { try await logIn(token, session: "thief", logins, verifier) }
    #expect(try await logIn(token, session: "owner", logins, verifier).name == "Jane Doe")
}
