import Foundation
import Graph
import HTTP1
import LimitedLogin
import Networking
import StandInIssuer
import TestSupport
import Testing

@testable import VerificationService

@Suite("/openapi.json says what the service does")
struct OpenAPITests {
    private typealias Object = [String: Any]

    private static func document() async throws -> Object {
        let service = try await InProcessService()
        let answer = try service.answer("GET", "/openapi.json", fields: [])
        #expect(answer.status == 200)
        #expect(answer["content-type"] == "application/json")
        return try #require(try JSONSerialization.jsonObject(with: Data(answer.body)) as? Object)
    }

    @Test("Every route of the service's listener is there, and no other")
    func routes() async throws {
        let document = try await Self.document()
        let paths = try #require(document["paths"] as? Object)
        let routes = Route.allCases.filter { $0 != .unmatched && $0 != .metrics }.map { "\($0.path)" }
        #expect(Set(paths.keys) == Set(routes + ["/auth/{path}"]))
        #expect(document["openapi"] as? String == "3.1.0")
    }

    @Test("Each path has exactly the methods that the router lets through", arguments: OpenAPIDocument.documented)
    func methods(route: Route) async throws {
        let paths = try #require(try await Self.document()["paths"] as? Object)
        let item = try #require(paths["\(route.path)"] as? Object)
        let documented = Set(item.keys).subtracting(["parameters"])
        let service = try await InProcessService(gatewayIsEnabled: true)
        var answered: Set<String> = []
        let path = "\(route.path)".replacing("{user_id}", with: "1").replacing("{permission}", with: "email")
        // OpenAPI 3.1 has no word for QUERY; CONNECT never gets as far as a path.
        let methods = HTTPMethod.allCases.filter { ![.unrecognized, .connect, .query].contains($0) }
        for method in methods {
            let name = "\(method.name)"
            // OPTIONS tells the methods of every path; only at /auth is it judged like any other.
            if method == .options, route != .auth { continue }
            let status = try service.answer(name, path, fields: []).status
            if status != 405 { answered.insert(name.lowercased()) }
        }
        #expect(documented == answered)
    }

    @Test("Every code is documented under its status, with an example", arguments: ProblemCode.all)
    func codes(code: ProblemCode) async throws {
        let document = try await Self.document()
        let paths = try #require(document["paths"] as? [String: Object])
        var places = 0
        for item in paths.values {
            for case let operation as Object in item.values {
                let responses = try #require(operation["responses"] as? [String: Object])
                for (status, response) in responses {
                    let content = response["content"] as? [String: Object]
                    let examples = content?["application/problem+json"]?["examples"] as? [String: Object]
                    guard let example = examples?[code.text]?["value"] as? Object else { continue }
                    places += 1
                    #expect(status == "\(code.status)")
                    #expect(example["code"] as? String == code.text)
                    #expect(example["title"] as? String == code.title)
                }
            }
        }
        #expect(places > 0)
        let components = try #require(document["components"] as? [String: Object])
        let properties = (components["schemas"]?["Problem"] as? Object)?["properties"] as? [String: Object]
        #expect((properties?["code"]?["enum"] as? [String])?.contains(code.text) == true)
    }

    @Test("Every reference leads somewhere")
    func references() async throws {
        let document = try await Self.document()
        func visit(_ value: Any) throws {
            if let object = value as? Object {
                if let reference = object["$ref"] as? String {
                    var place: Any = document
                    for name in reference.split(separator: "/").dropFirst() {
                        place = try #require((place as? Object)?[String(name)], "\(reference)")
                    }
                }
                for member in object.values { try visit(member) }
            } else if let array = value as? [Any] {
                for element in array { try visit(element) }
            }
        }
        try visit(document)
    }

    @Test("The schema of an answer names every member that the service writes")
    func answers() async throws {
        let document = try await Self.document()
        let schemas = try #require((document["components"] as? [String: Object])?["schemas"] as? [String: Object])
        let service = try await InProcessService()
        var claims = Tokens.claims()
        (claims.name, claims.givenName, claims.middleName, claims.familyName) = ("J Q D", "J", "Q", "D")
        (claims.email, claims.picture, claims.link, claims.gender) = ("a@b.c", "https://p", "https://l", "f")
        (claims.friendIDs, claims.birthday) = (["1"], "01/02/1990")
        (claims.ageRange, claims.hometown) = ((minimum: 18, maximum: 20), (id: "1", name: "A"))
        claims.location = (id: "2", name: "B")
        let answer = try service.verify(
            try Tokens.mint(claims),
            #""nonce":"n-1","permissions":["user_messenger_contact"]"#
        )
        let body = try #require(try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any])
        let pairs: [(String, Object?)] = [
            ("VerifyAnswer", body), ("AuthenticationToken", body["authentication_token"] as? Object),
            ("Profile", body["profile"] as? Object),
        ]
        for (schema, object) in pairs {
            let properties = try #require(schemas[schema]?["properties"] as? Object)
            #expect(Set(properties.keys) == Set(try #require(object).keys), "\(schema)")
        }
        let nothing = try service.verify(try Tokens.mint(Tokens.claims()))
        let least = try #require(try JSONSerialization.jsonObject(with: Data(nothing.body)) as? [String: Any])
        #expect(Set(schemas["VerifyAnswer"]?["required"] as? [String] ?? []) == Set(least.keys))
        let profile = try #require(least["profile"] as? Object)
        #expect(Set(schemas["Profile"]?["required"] as? [String] ?? []) == Set(profile.keys))
        var permissions: [UInt8] = []
        let user = try #require(GraphUserID("1"))
        PermissionsAnswer.write(UserPermissions(), user: user, appID: "1", needed: [], to: &permissions)
        let written = try #require(try JSONSerialization.jsonObject(with: Data(permissions)) as? Object)
        let described = try #require(schemas["UserPermissions"]?["properties"] as? Object)
        #expect(Set(described.keys) == Set(written.keys))
    }
}
