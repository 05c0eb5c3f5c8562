import Foundation
import LLHTTP
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService

@Suite("/openapi.json agrees with the service", .live)
struct OpenAPITests {
    private typealias Object = [String: Any]

    private static func document() throws -> Object {
        try #require(try JSONSerialization.jsonObject(with: Data(OpenAPIDocument.bytes)) as? Object)
    }

    private static func schemas() throws -> [String: Object] {
        try #require((try document()["components"] as? [String: Object])?["schemas"] as? [String: Object])
    }

    private static func properties(_ schema: String) throws -> Object {
        try #require(try schemas()[schema]?["properties"] as? Object, "\(schema)")
    }

    private static let documented = Route.table.filter { $0.listeners.contains(.service) }

    /// The responses of each operation of a path, by method and by status or `default`, with references resolved.
    private static func operations(_ path: String) throws -> [String: [String: Object]] {
        let document = try document()
        let paths = try #require(document["paths"] as? [String: Object])
        let item = try #require(paths[path], "\(path)").filter { HTTPMethod.allCases.map(\.member).contains($0.key) }
        return try item.mapValues { operation in
            let responses = try #require((operation as? Object)?["responses"] as? [String: Object])
            return try responses.mapValues { try resolved($0, document) }
        }
    }

    private static func resolved(_ object: Object, _ document: Object) throws -> Object {
        guard let reference = object["$ref"] as? String else { return object }
        var place: Any = document
        for name in reference.split(separator: "/").dropFirst() {
            place = try #require((place as? Object)?[String(name)], "\(reference)")
        }
        return try #require(place as? Object, "\(reference)")
    }

    /// The codes in the description of a problem: all its words in backquotes.
    private static func codes(_ response: Object) throws -> Set<String> {
        let description = try #require(response["description"] as? String)
        return Set(description.matches(of: /`([a-z_]+)`/).map { String($0.1) })
    }

    @Test("The document has every route of the service's listener, and no other")
    func routes() async throws {
        let answer = try await InProcessService().answer("GET", "/openapi.json", fields: [])
        #expect(answer.status == 200 && answer["content-type"] == "application/json")
        #expect(answer.body == OpenAPIDocument.bytes)
        let document = try Self.document()
        let paths = try #require(document["paths"] as? Object)
        #expect(Set(paths.keys) == Set(Self.documented.map { "\($0.path)" } + ["/auth/{path}"]))
        #expect(document["openapi"] as? String == "3.1.0")
    }

    /// Settings that configure every route.
    private static func withEveryRoute() throws -> RuntimeSettings {
        let secrets = Array("1 \(String(repeating: "a", count: 32))".utf8)
        return RuntimeSettings(
            verifier: TokenVerifier(policy: try VerificationPolicy(appIDs: ["1"]), nonces: try DecodedNonce.issuer()),
            clients: nil,
            gateway: GatewaySettings(),
            appSecrets: try AppSecrets(parsing: secrets, place: "secrets", appIDs: ["1"]),
            webhook: try CallbackService.target("https://backend.example/"),
            tokens: try OwnTokens.settings()
        )
    }

    @Test("Each path has exactly the methods that the router accepts", arguments: documented)
    func methods(route: Route) async throws {
        let documented = Set(try Self.operations("\(route.path)").keys)
        let service = try await InProcessService()
        service.core.settings.publish(try Self.withEveryRoute())
        var answered: Set<String> = []
        let path = "\(route.path)".replacing("{user_id}", with: "1").replacing("{permission}", with: "email")
        // OpenAPI 3.1 cannot describe QUERY, and a CONNECT request has no path.
        let methods = HTTPMethod.allCases.filter { ![.unrecognized, .connect, .query].contains($0) }
        for method in methods {
            // OPTIONS lists the methods of every path, except that /auth judges it like any other method.
            if method == .options, route.methods != nil { continue }
            let status = try service.answer("\(method.name)", path, fields: []).status
            if status != 405 { answered.insert(method.member) }
        }
        #expect(documented == answered)
    }

    @Test("Each operation has exactly the codes of its route, each under its status", arguments: documented)
    func codes(route: Route) throws {
        for path in ["\(route.path)"] + (route.takesPathsBelow ? ["\(route.path)/{path}"] : []) {
            for (method, responses) in try Self.operations(path) {
                let refused = responses.filter { !$0.key.hasPrefix("2") }
                let statuses = Set(route.problems.map { "\(route.dialect.status(of: $0))" } + ["default"])
                #expect(Set(refused.keys) == statuses, "\(method) \(path)")
                for (status, response) in refused {
                    let expected = Rejection.Code.all.filter {
                        status == "default"
                            ? Rejection.Code.ofAnyPath.contains($0)
                            : route.mayAnswer($0) && "\(route.dialect.status(of: $0))" == status
                    }
                    #expect(try Self.codes(response) == Set(expected.map(\.rawValue)), "\(method) \(path) \(status)")
                    let headers = response["headers"] as? Object ?? [:]
                    let isLater = expected.contains { $0.retryAfterSeconds != nil } && status != "400"
                    let hasChallenge = expected.contains { $0.hasChallenge } && status != "400"
                    #expect((headers["Retry-After"] != nil) == isLater, "\(method) \(path) \(status)")
                    #expect((headers["WWW-Authenticate"] != nil) == hasChallenge, "\(method) \(path) \(status)")
                }
            }
        }
    }

    @Test("The problem's schema has exactly all codes, and every code belongs to some path")
    func enumeration() throws {
        let codes = (try Self.properties("Problem")["code"] as? Object)?["anyOf"] as? [Object]
        #expect(codes?.first?["enum"] as? [String] == Rejection.Code.all.map(\.rawValue))
        let answered = Self.documented.flatMap(\.problems) + Rejection.Code.ofAnyPath
        #expect(Set(answered) == Set(Rejection.Code.all))
    }

    @Test("Answers are open: a client generated today accepts the words and members of tomorrow")
    func openAnswers() throws {
        let document = try Self.document()
        var pending: [Any] = [document["webhooks"] as Any]
        for path in try #require(document["paths"] as? [String: Object]).values {
            pending += path.values.compactMap { ($0 as? Object)?["responses"] }
        }
        let components = try #require(document["components"] as? Object)
        var seen: Set<String> = []
        while let next = pending.popLast() {
            if let list = next as? [Any] { pending += list }
            guard let object = next as? Object else { continue }
            #expect(object["enum"] == nil && object["const"] == nil, "\(object)")
            #expect(object["additionalProperties"] as? Bool != false, "\(object)")
            if let reference = object["$ref"] as? String, seen.insert(reference).inserted {
                let parts = reference.split(separator: "/").suffix(2).map(String.init)
                pending.append(try #require((components[parts[0]] as? Object)?[parts[1]]))
            }
            // A list of known words is open if any other string is allowed beside it.
            let choices = object["anyOf"] as? [Object] ?? []
            let isOpen = choices.contains { $0["type"] as? String == "string" && $0.count == 1 }
            for (name, value) in object where !(name == "anyOf" && isOpen) && !name.hasPrefix("example") {
                pending.append(value)
            }
        }
        #expect(seen.count > 10)
    }

    @Test("An answer that many codes share tells the status of each", arguments: Rejection.Code.ofAnyPath)
    func statuses(code: Rejection.Code) throws {
        let responses = try Self.operations("/verify")
        let description = try #require(responses["post"]?["default"]?["description"] as? String)
        #expect(description.contains("- `\(code.rawValue)` (\(code.status)): "))
    }

    @Test("The page on the API has a row for each code, with its status", arguments: Rejection.Code.all)
    func page(code: Rejection.Code) throws {
        // Graph's codes are on the page of permissions.
        if code.isOfGraph { return }
        let page = try ProjectFiles.text("Sources/LLService/LLService.docc/API.md")
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("- \(code.status) `") }
        #expect(rows.count { $0.contains("`\(code.rawValue)`") } == 1)
    }

    @Test("The form of /introspect names every parameter that the service reads")
    func introspection() throws {
        let properties = try Set(Self.properties("IntrospectRequest").keys)
        #expect(properties == Set(IntrospectRequest.parameters.map(\.description)))
    }

    @Test("The schema of an answer names every member that the service writes")
    func answers() async throws {
        let service = try await InProcessService()
        var claims = Tokens.claims()
        AnswerTypeTests.addEveryFact(to: &claims)
        claims.confirmationThumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
        let answer = try service.verify(
            try Tokens.mint(claims),
            #""nonce":"n-1","subject":"2954873201847263","permissions":["user_messenger_contact"]"#
        )
        let least = try service.verify(try Tokens.mint(Tokens.claims()))
        let inspection = try AccessTokenInspection(
            debugToken: Array(GraphStory.data().utf8),
            appIDs: [InProcessService.appID],
            now: try #require(NumericDate(secondsSince1970: Int64(1_700_000_000)))
        )
        var verified = try VerifiedAccessToken(me: Array(GraphStory.me.utf8), of: inspection)
        verified.nonce = try AccessTokenNonce(
            accessTokenInfo: Array(#"{"auth_nonce":"n"}"#.utf8),
            of: verified,
            expecting: .nonce(try #require(Nonce("n"))),
            now: .beginning
        )
        var (accessToken, permissions): ([UInt8], [UInt8]) = ([], [])
        AccessTokenAnswer.write(verified, asked: [], to: &accessToken)
        let user = try #require(GraphUserID("1"))
        UserPermissions().write(user: user, appID: "1", needed: [], to: &permissions)
        func members(_ body: [UInt8], _ member: String? = nil) throws -> Set<String> {
            let whole = try #require(try JSONSerialization.jsonObject(with: Data(body)) as? Object)
            return Set(try #require(member.map { whole[$0] as? Object } ?? whole).keys)
        }
        let written = [
            ("VerifyAnswer", try members(answer.body)),
            // An unreadable `cnf` takes the place of the thumbprint.
            ("AuthenticationToken", try members(answer.body, "authentication_token").union(["confirmation"])),
            ("Profile", try members(answer.body, "profile")), ("AccessTokenAnswer", try members(accessToken)),
            ("InspectedAccessToken", try members(accessToken, "access_token")),
            ("UserPermissions", try members(permissions)),
        ]
        for (schema, members) in written { #expect(Set(try Self.properties(schema).keys) == members, "\(schema)") }
        let told = Set(PersonalClaim.table.map { "\($0.member)" })
        #expect(told.subtracting(try Self.properties("Profile").keys) == [])
        for (schema, members) in [
            ("VerifyAnswer", try members(least.body)), ("Profile", try members(least.body, "profile")),
        ] { #expect(Set(try Self.schemas()[schema]?["required"] as? [String] ?? []) == members) }
    }
}

extension HTTPMethod {
    /// The method's name in a path item.
    fileprivate var member: String { "\(name)".lowercased() }
}

extension Rejection.Code {
    /// True if the answer has a challenge (RFC 6750 section 3).
    fileprivate var hasChallenge: Bool { status == 401 || self == .insufficientScope }
}
