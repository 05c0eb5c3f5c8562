import LLTestSupport
import Testing

@testable import LLService

@Suite("POST /verify: a login and its refresh, the device, the access token", .live)
struct RefreshRouteTests {
    private static let user = "2954873201847263"
    private static let thumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
    /// The example of OpenID Connect Core appendix A.4.
    private static let accessToken = "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y"

    /// Binds a token to a device and to an access token.
    @Sendable static func bind(_ claims: inout MintedClaims) {
        (claims.confirmationThumbprint, claims.accessTokenHash) = (thumbprint, "77QmUPtjPfzWtF2AnpK9RQ")
    }

    /// A bound token of a login that began with `nonce`.
    private static func token(_ nonce: String?) throws -> String {
        var claims = Tokens.claims()
        claims.nonce = nonce
        bind(&claims)
        return try Tokens.mint(claims)
    }

    private static let subject = #""subject":"\#(user)""#
    private static let device = #""key_thumbprint":"\#(thumbprint)""#
    private static let access = #""access_token":"\#(accessToken)""#
    private static let others = [
        (#""subject":"9""#, "subject_mismatch"),
        (#""key_thumbprint":"2oiHBxiRrPn1mgPqWLfGSB9M1lRrDCUwmk3SyfjAY1c""#, "key_thumbprint_mismatch"),
        (#""access_token":"EAAother""#, "at_hash_mismatch"),
    ]

    @Test("The first wrong part decides: nonce, person, device, access token; the order of the members does not matter")
    func order() async throws {
        let service = try await InProcessService(nonces: try DecodedNonce.issuer())
        let issued = #""issued_nonce":true"#
        for (nonce, member, code) in [
            ("of-the-login", #""nonce":"of-the-login""#, nil),
            ("elsewhere", #""nonce":"of-the-login""#, "nonce_mismatch"),
            (nil, #""nonce":"of-the-login""#, "missing_claim"), ("elsewhere", issued, "nonce_not_issued"),
            (try DecodedNonce.made(millisecondsAgo: 86_400_000), issued, nil),
        ] as [(String?, String, String?)] {
            let token = try Self.token(nonce)
            let good = [Self.subject, member, Self.device, Self.access]
            for members in [good, good.reversed()] {
                let answer = try service.verify(token, members.joined(separator: ","))
                #expect(answer.code == code && answer.status == (code == nil ? 200 : 401), "\(members)")
                guard code == nil else { continue }
                #expect(answer.text.contains(#""refresh":true"#) && answer.text.contains(Self.device), "\(answer.text)")
            }
            for first in Self.others.indices {
                let wrong = Self.others[first...].map(\.0) + [Self.subject, Self.device, Self.access][..<first]
                let answer = try service.verify(token, ([member] + wrong).joined(separator: ","))
                #expect(answer.code == code ?? Self.others[first].1, "\(member) \(wrong)")
            }
        }
    }

    @Test("Only a login uses up its issued nonce, with or without the device and the access token")
    func uses() async throws {
        let service = try await InProcessService(nonces: try DecodedNonce.issuer())
        for more in ["", "," + Self.device, "," + Self.access, ",\(Self.device),\(Self.access)"] {
            let token = try Self.token(DecodedNonce.made(millisecondsAgo: 5_000))
            let login = #""issued_nonce":true"# + more
            for _ in 0..<2 { #expect(try service.verify(token, "\(Self.subject),\(login)").status == 200) }
            let first = try service.verify(token, login)
            #expect(first.status == 200 && !first.text.contains("refresh"), "\(first.text)")
            #expect(try service.verify(token, login).code == "nonce_used")
        }
    }

    @Test("With the person alone any nonce of the token passes; device and access token are still compared")
    func subjectAlone() async throws {
        let service = try await InProcessService()
        for nonce in ["of-the-login", "elsewhere", nil] {
            let token = try Self.token(nonce)
            let answer = try service.verify(token, Self.subject)
            #expect(answer.status == 200 && answer.text.contains(#""refresh":true"#))
            for (member, code) in Self.others.dropFirst() {
                #expect(try service.verify(token, "\(member),\(Self.subject)").code == code)
            }
        }
        // A device alone binds the token to no login.
        #expect(try service.verify(Self.token("of-the-login"), Self.device).code == "invalid_request")
    }

    @Test("No member of one request is kept for the next")
    func reuse() async throws {
        let service = try await InProcessService()
        let full = ([#""nonce":"a""#] + Self.others.map(\.0)).joined(separator: ",")
        let token = try Tokens.mint(Tokens.claims())
        for _ in 0..<3 {
            #expect(try service.verify(token, full).status == 401)
            let answer = try service.verify(token)
            #expect(answer.status == 200 && !answer.text.contains("refresh"))
        }
    }
}
