import LLBytes
import LLJOSE
package import LLStandIn

/// A valid DPoP proof. Each test changes it.
package struct Proof {
    /// The key of the token's device.
    package static let key = makeMinter()
    package static let stranger = makeMinter()
    package static let url = "https://api.example.com/login/me"

    /// The members as JSON; nil leaves one out.
    package var header, payload: [(String, String?)]
    package var minter: ProofMinter
    /// The header and payload as text; nil for the JSON of their members.
    package var headerText, payloadText: String?
    package let token: String
    /// The time of the check, in seconds since 1970.
    package let now: Int64

    /// A proof made five seconds ago.
    package init(token: String, now: Int64, tokenID: String = "e1j3V_bKic8-LAEB") throws {
        (self.token, self.now) = (token, now)
        minter = Self.key
        header = [("typ", #""dpop+jwt""#), ("alg", #""ES256""#), ("jwk", minter.jsonWebKey)]
        payload = [
            ("htm", #""GET""#), ("htu", "\"\(Self.url)\""), ("iat", "\(now - 5)"), ("jti", "\"\(tokenID)\""),
            ("ath", "\"\(try Self.hash(token))\""),
        ]
    }

    package static func hash(_ token: String) throws -> String {
        try SHA256.digest(of: Array(token.utf8).span).base64URL
    }

    package mutating func set(header name: String, _ json: String?) {
        header.removeAll { $0.0 == name }
        header.append((name, json))
    }

    package mutating func set(_ name: String, _ json: String?) {
        payload.removeAll { $0.0 == name }
        payload.append((name, json))
    }

    private static func json(_ members: [(String, String?)]) -> String {
        let present = members.compactMap { name, json in json.map { "\"\(name)\":\($0)" } }
        return "{" + present.joined(separator: ",") + "}"
    }

    package func make() throws -> String {
        try minter.mint(header: headerText ?? Self.json(header), payload: payloadText ?? Self.json(payload))
    }

    private static func makeMinter() -> ProofMinter {
        guard let key = try? PrivateKey(.p256) else { fatalError("no P-256 key could be made") }
        return ProofMinter(key: key)
    }
}
