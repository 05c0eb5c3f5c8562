import LLBytes
import LLJOSE
import LLStandIn
import LimitedLogin
import Testing

@Suite("The catalogue of refused tokens")
struct RefusalCatalogueTests {
    private static let now: Int64 = 1_732_838_400
    private static let keys = try? IssuerKeyRing()

    private static func workshop() throws -> CatalogueWorkshop {
        CatalogueWorkshop(
            template: ClaimsTemplate(issuer: "https://www.facebook.com", audience: "123456789012345"),
            keys: try #require(keys).catalogueMinters(),
            nonce: "n-1",
            now: now
        )
    }

    /// The code that refuses the entry's token under its expectation and setting; nil if the token is accepted.
    private static func verdict(_ entry: CatalogueEntry) throws -> String? {
        let workshop = try workshop()
        var binding: TokenBinding?
        var thumbprint: String?
        var accessToken: String?
        for (name, value) in entry.requestMembers(workshop) {
            switch name {
            case "nonce": binding = .nonce(try #require(Nonce(value)))
            case "subject": binding = .refresh(ofSessionOf: value)
            case "key_thumbprint": thumbprint = value
            case "access_token": accessToken = value
            default: Issue.record("a member nobody knows: \(name)")
            }
        }
        let verifier = TokenVerifier(
            policy: try VerificationPolicy(
                appIDs: [workshop.audience],
                maximumTokenAge: entry.setting?.name == "max_token_age_seconds" ? .seconds(600) : nil,
                tracking: entry.setting?.name == "tracking" ? .limited : .any
            )
        )
        let keySet = try JWKSet(parsing: TokenMinter.jwkSet(try #require(keys).published).span)
        let expectation = TokenExpectation(
            binding: try #require(binding),
            keyThumbprint: thumbprint,
            accessToken: accessToken
        )
        let (token, now) = (try entry.token(workshop), try #require(NumericDate(secondsSince1970: now)))
        do {
            _ = try verifier.verify(token, expecting: expectation, keys: keySet, now: now)
            return nil
        } catch let error as Rejection {
            return error.code.rawValue
        }
    }

    @Test("The changed token has the signature of a token that differs in one byte of a claim")
    func changed() throws {
        let token = try #require(CatalogueEntry.named("changed")).token(Self.workshop())
        let digits = Array(token.split(separator: ".")[1].utf8)
        var payload: [UInt8] = []
        let isDecoded = Base64URL.decode(digits.span, digits.indices, into: &payload)
        #expect(isDecoded)
        let genuine = String(decoding: payload, as: UTF8.self).replacing("\"Dow\"", with: "\"Doe\"")
        let minter = try #require(Self.keys?.published.first)
        let signed = try minter.mint(header: minter.header, payload: Array(genuine.utf8))
        #expect(token != signed)
        #expect(token.split(separator: ".").last == signed.split(separator: ".").last)
    }

    @Test("Every entry is refused with its code, or accepted if it has none", arguments: CatalogueEntry.all.map(\.name))
    func entry(name: String) throws {
        let entry = try #require(CatalogueEntry.named(name))
        // A token presented twice is refused as used, but a verifier alone does not know used tokens.
        #expect(try Self.verdict(entry) == (entry.presentations > 1 ? nil : entry.code?.rawValue))
    }

    @Test("Names are valid file names, and none occurs twice")
    func names() {
        let names = CatalogueEntry.all.map(\.name)
        #expect(Set(names).count == names.count)
        for name in names {
            #expect(name.utf8.allSatisfy { $0 &- 0x61 < 26 || $0 &- 0x30 < 10 || $0 == UInt8(ascii: "-") }, "\(name)")
        }
        #expect(CatalogueEntry.all.filter { $0.code == nil }.count == 2)
    }

    @Test("Every code that a token can cause has an entry")
    func coverage() {
        // The others need the memory of a service.
        let others: Set<Rejection.Code> = [.nonceNotIssued, .nonceExpired, .nonceUsed, .loginRevoked]
        #expect(Set(CatalogueEntry.all.compactMap(\.code)) == Set(Rejection.Code.ofTokens).subtracting(others))
    }
}
