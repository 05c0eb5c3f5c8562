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
    /// Nil if the answer is no problem.
    private var problem: DecodedProblem? { try? JSONDecoder().decode(DecodedProblem.self, from: Data(body)) }
    var code: String? { problem?.code }
    var detail: String { problem?.detail ?? "" }
    var hint: String { problem?.hint ?? "" }
}
