import LLHTTP
import LLJOSE
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService

@Suite("POST /verify: a login and its refresh, the device, the access token", .live)
struct RefreshRouteTests {
    /// The form of the nonce in the request.
    enum Form: String, CaseIterable, Sendable {
        case nonce, rawNonce, issuedNonce, oldIssuedNonce
    }

    /// The given value of a part: the login's, another's, or none.
    enum Given: String, CaseIterable, Sendable {
        case right, wrong, absent
    }

    private static let user = "2954873201847263"
    private static let thumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
    private static let otherThumbprint = "2oiHBxiRrPn1mgPqWLfGSB9M1lRrDCUwmk3SyfjAY1c"
    /// The example of OpenID Connect Core appendix A.4.
    private static let accessToken = "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y"
    private static let accessTokenHash = "77QmUPtjPfzWtF2AnpK9RQ"

    private static func service(rejectsReplays: Bool = false) async throws -> InProcessService {
        try await InProcessService(nonces: try DecodedNonce.issuer(), rejectsReplays: rejectsReplays)
    }

    /// A nonce issued for the app `secondsAgo` seconds ago. It is valid for ten minutes.
    private static func issued(secondsAgo: UInt64) throws -> String {
        let issued = try DecodedNonce.issuer().issue(
            appID: InProcessService.appID,
            lifetimeSeconds: 600,
            now: WallClock.unixMilliseconds() - secondsAgo * 1_000,
            randomBytes: (0..<16).map { _ in UInt8.random(in: .min ... .max) }
        )
        return try #require(issued).nonce.value
    }

    /// The token of a login that began with this form of nonce. Its own nonce is right, wrong or absent.
    private static func token(_ form: Form, nonce: Given = .right) throws -> String {
        var claims = Tokens.claims()
        switch (nonce, form) {
        case (.absent, _): claims.nonce = nil
        case (.wrong, _): claims.nonce = "made-elsewhere"
        case (.right, .nonce): claims.nonce = "of-the-login"
        case (.right, .rawNonce): claims.nonce = try SHA256.digest(of: Array("of-the-login".utf8).span).hexadecimal
        case (.right, .issuedNonce): claims.nonce = try issued(secondsAgo: 5)
        case (.right, .oldIssuedNonce): claims.nonce = try issued(secondsAgo: 86_400)
        }
        claims.confirmationThumbprint = thumbprint
        claims.accessTokenHash = accessTokenHash
        return try Tokens.mint(claims)
    }

    private static func member(_ form: Form) -> String {
        switch form {
        case .nonce: #""nonce":"of-the-login""#
        case .rawNonce: #""raw_nonce":"of-the-login""#
        case .issuedNonce, .oldIssuedNonce: #""issued_nonce":true"#
        }
    }

    private static func member(_ name: String, _ given: Given, _ right: String, _ wrong: String) -> String? {
        given == .absent ? nil : "\"\(name)\":\"\(given == .right ? right : wrong)\""
    }

    /// The expected code; nil if the token is accepted. The first wrong part decides: nonce, person, device, access
    /// token.
    private static func code(_ form: Form, nonce: Given, subject: Given, device: Given, access: Given) -> String? {
        let isIssued = form == .issuedNonce || form == .oldIssuedNonce
        if nonce == .absent { return "missing_claim" }
        if nonce == .wrong { return isIssued ? "nonce_not_issued" : "nonce_mismatch" }
        // A login must use its issued nonce before it expires; a refresh may use it for as long as the session lasts.
        if form == .oldIssuedNonce, subject == .absent { return "nonce_expired" }
        if subject == .wrong { return "subject_mismatch" }
        if device == .wrong { return "key_thumbprint_mismatch" }
        return access == .wrong ? "at_hash_mismatch" : nil
    }

    @Test(
        "Each combination of nonce, person, device and access token has its code; only a login uses up its nonce",
        arguments: Form.allCases,
        Given.allCases
    )
    func combinations(form: Form, nonce: Given) async throws {
        let service = try await Self.service()
        for subject in Given.allCases {
            for device in Given.allCases {
                for access in Given.allCases {
                    let members = [
                        Self.member("subject", subject, Self.user, "9"), Self.member(form),
                        Self.member("key_thumbprint", device, Self.thumbprint, Self.otherThumbprint),
                        Self.member("access_token", access, Self.accessToken, "EAAother"),
                    ].compactMap(\.self)
                    let token = try Self.token(form, nonce: nonce)
                    let code = Self.code(form, nonce: nonce, subject: subject, device: device, access: access)
                    let answer = try service.verify(token, members.joined(separator: ","))
                    #expect(answer.code == code, "\(members)")
                    #expect(answer.status == (code == nil ? 200 : 401))
                    guard code == nil else { continue }
                    #expect(answer.text.contains("\"refresh\":true") == (subject == .right))
                    #expect(answer.text.contains("\"key_thumbprint\":\"\(Self.thumbprint)\""))
                    let isUsed = subject == .absent && form == .issuedNonce
                    // The order of the members does not matter.
                    let again = try service.verify(token, members.reversed().joined(separator: ","))
                    #expect(again.code == (isUsed ? "nonce_used" : nil), "\(members)")
                }
            }
        }
    }

    @Test("With the person alone any nonce of the token passes; device and access token may be given beside it")
    func subjectAlone() async throws {
        let service = try await Self.service()
        for nonce in Given.allCases {
            let token = try Self.token(.nonce, nonce: nonce)
            let answer = try service.verify(token, "\"subject\":\"\(Self.user)\"")
            #expect(answer.status == 200 && answer.text.contains("\"refresh\":true"))
            #expect(try service.verify(token, #""subject":"9""#).code == "subject_mismatch")
            let both = "\"key_thumbprint\":\"\(Self.otherThumbprint)\",\"subject\":\"\(Self.user)\""
            #expect(try service.verify(token, both).code == "key_thumbprint_mismatch")
            let access = "\"access_token\":\"x\",\"subject\":\"\(Self.user)\""
            #expect(try service.verify(token, access).code == "at_hash_mismatch")
        }
        // A device alone binds the token to no login.
        let device = "\"key_thumbprint\":\"\(Self.thumbprint)\""
        #expect(try service.verify(Self.token(.nonce), device).code == "invalid_request")
    }

    @Test("No member of one request is kept for the next")
    func reuse() async throws {
        let service = try await Self.service()
        let full =
            #""subject":"9","nonce":"a","access_token":"b","key_thumbprint":"#
            + "\"\(Self.otherThumbprint)\""
        let token = try Tokens.mint(Tokens.claims())
        for _ in 0..<3 {
            #expect(try service.verify(token, full).status == 401)
            let answer = try service.verify(token)
            #expect(answer.status == 200 && !answer.text.contains("refresh"))
        }
    }
}
