// Asks limited-login about a login, whose nonce comes from your session, from any Swift program:
//   VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... verify TOKEN nonce NONCE
// `verify TOKEN subject USER` asks about the refreshed token of your session's user; `verify TOKEN` about an access token.
// Exit code 0 accepted, 1 refused, 3 no verdict now (keep the session and try again), 64 wrong call.
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The part of the answer that this program needs.
struct Answer: Decodable {
    struct Profile: Decodable {
        let userID: String
        let name: String?

        enum CodingKeys: String, CodingKey {
            case userID = "user_id"
            case name
        }
    }

    let profile: Profile
}

/// A refusal of the token (RFC 9457); the code is stable.
struct Refused: Error, Decodable {
    let code: String
    let detail: String
}

/// There is no verdict now.
struct Unavailable: Error, CustomStringConvertible {
    let description: String
}

/// Sends no password. FoundationNetworking would wait for one for ever if the service asks for this server's key.
final class NoPasswords: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        completionHandler(.rejectProtectionSpace, nil)
    }
}

let session = URLSession(configuration: .ephemeral, delegate: NoPasswords(), delegateQueue: nil)

/// - Parameter binding: the `nonce` of the session, or its user as `subject` for a refresh; never a value from the client.
/// - Throws: ``Refused``; any other error means that there is no verdict now.
func verify(_ token: String, binding: [String: String] = [:]) async throws -> Answer {
    let environment = ProcessInfo.processInfo.environment
    guard let url = URL(string: (environment["VERIFY_URL"] ?? "http://127.0.0.1:8080") + "/verify") else {
        throw URLError(.badURL)
    }
    var request = URLRequest(url: url, timeoutInterval: 10)
    request.httpMethod = "POST"
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    if let key = environment["VERIFY_KEY"] { request.setValue(key, forHTTPHeaderField: "X-Api-Key") }
    var members = binding
    members[token.hasPrefix("eyJ") ? "id_token" : "access_token"] = token
    request.httpBody = try JSONEncoder().encode(members)
    // This server's own key is missing or wrong: an outage, not a refusal.
    let keyless = Unavailable(description: "set VERIFY_KEY to a key that the service knows")
    let (body, response): (Data, URLResponse)
    do {
        (body, response) = try await session.data(for: request)
    } catch let error as URLError where error.code == .cancelled {
        throw keyless
    }
    let status = (response as? HTTPURLResponse)?.statusCode
    if status == 200 { return try JSONDecoder().decode(Answer.self, from: body) }
    let problem = try JSONDecoder().decode(Refused.self, from: body)
    if problem.code == "unauthorized_client" { throw keyless }
    if status == 401 { throw problem }
    throw Unavailable(description: "\(problem.code): \(problem.detail)")
}

@main
struct Verify {
    static func main() async {
        let arguments = CommandLine.arguments
        guard [2, 4].contains(arguments.count) else {
            print("usage: verify TOKEN [nonce NONCE | subject USER]")
            exit(64)
        }
        do {
            let binding = arguments.count > 2 ? [arguments[2]: arguments[3]] : [:]
            let answer = try await verify(arguments[1], binding: binding)
            print(answer.profile.userID, answer.profile.name ?? "")
        } catch let refusal as Refused {
            print("\(refusal.code): \(refusal.detail)")
            exit(1)
        } catch {
            print("\(error)")
            exit(3)
        }
    }
}
