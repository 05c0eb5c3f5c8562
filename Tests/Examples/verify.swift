// Asks limited-login about an id token, or without a nonce about an access token, from any Swift program.
//   VERIFY_URL=http://127.0.0.1:8080 verify TOKEN [NONCE]      exit code 0 accepted, 1 refused, 3 try again
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

/// A refusal (RFC 9457); the code is stable.
struct Problem: Error, Decodable {
    let status: Int
    let code: String
    let detail: String
}

func verify(_ token: String, nonce: String?) async throws -> Answer {
    let environment = ProcessInfo.processInfo.environment
    guard let url = URL(string: (environment["VERIFY_URL"] ?? "http://127.0.0.1:8080") + "/verify") else {
        throw URLError(.badURL)
    }
    var request = URLRequest(url: url, timeoutInterval: 10)
    request.httpMethod = "POST"
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    if let key = environment["VERIFY_KEY"] { request.setValue(key, forHTTPHeaderField: "X-Api-Key") }
    let members = nonce.map { ["id_token": token, "nonce": $0] } ?? ["access_token": token]
    request.httpBody = try JSONEncoder().encode(members)
    let (body, response) = try await URLSession.shared.data(for: request)
    guard (response as? HTTPURLResponse)?.statusCode == 200 else {
        throw try JSONDecoder().decode(Problem.self, from: body)
    }
    return try JSONDecoder().decode(Answer.self, from: body)
}

@main
struct Verify {
    static func main() async {
        do {
            let nonce = CommandLine.arguments.count > 2 ? CommandLine.arguments[2] : nil
            let answer = try await verify(CommandLine.arguments[1], nonce: nonce)
            print(answer.profile.userID, answer.profile.name ?? "")
        } catch let problem as Problem where problem.status < 500 && problem.status != 429 {
            print("\(problem.code): \(problem.detail)")
            exit(1)
        } catch {
            // Nobody can tell in an outage (5xx, and 429 of Facebook) whether the token is good, so nobody is logged out for
            // it.
            print("\(error)")
            exit(3)
        }
    }
}
