import Foundation
import LLTestSupport

/// A problem as a client decodes it.
struct DecodedProblem: Decodable {
    let type, title, detail, hint, code: String
    let status: Int
    let claim: String?
    let requestID: String

    enum CodingKeys: String, CodingKey {
        case type, title, detail, hint, code, status, claim
        case requestID = "request_id"
    }
}

extension TestResponse {
    /// The answer's JSON object; empty if it is none.
    var object: [String: Any] { (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:] }
    /// The problem's code; nil if the answer is no problem.
    var code: String? { (try? JSONDecoder().decode(DecodedProblem.self, from: Data(body)))?.code }
    /// The problem's detail; empty if the answer is no problem.
    var detail: String { (try? JSONDecoder().decode(DecodedProblem.self, from: Data(body)))?.detail ?? "" }
    /// The problem's hint; empty if the answer is no problem.
    var hint: String { (try? JSONDecoder().decode(DecodedProblem.self, from: Data(body)))?.hint ?? "" }
}
