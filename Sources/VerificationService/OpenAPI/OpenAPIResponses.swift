internal import HTTP1

/// The `responses` of an operation: the good answer, then one for each status of the route's problems.
enum OpenAPIResponses {
    static func of(_ route: Route, _ method: HTTPMethod) -> OpenAPIValue {
        var members: [OpenAPIValue.Member] = [success(route, method)]
        let codes = route.problems + (route == .auth ? [] : [.methodNotAllowed]) + ProblemCode.ofServer
        for status in Set(codes.map(\.status)).sorted() {
            var group: [ProblemCode] = []
            for code in codes where code.status == status && !group.contains(code) { group.append(code) }
            members.append(.init(name: "\(status)", value: problem(status, group)))
        }
        return .object(members)
    }

    private static func success(_ route: Route, _ method: HTTPMethod) -> OpenAPIValue.Member {
        if route.needsGraph, method != .get {
            let answer: OpenAPIValue = [
                "description": "It is done.", "headers": references(["X-Request-Id", "Cache-Control"]),
            ]
            return .init(name: "204", value: answer)
        }
        return .init(name: "200", value: success(route))
    }

    private static func success(_ route: Route) -> OpenAPIValue {
        var headers = ["X-Request-Id"]
        var content: OpenAPIValue?
        switch route {
        case .verify:
            content = json("VerifyAnswer", ["profile": ["value": OpenAPIExamples.verifyAnswer]])
        case .nonces:
            content = json("NonceAnswer", ["nonce": ["value": OpenAPIExamples.nonceAnswer]])
        case .introspect:
            content = json(
                "IntrospectAnswer",
                ["active": ["value": OpenAPIExamples.introspectAnswer], "inactive": ["value": ["active": false]]]
            )
        case .auth: headers += ["X-Auth-Subject", "X-Auth-Audience", "X-Auth-Expires", "X-Auth-Email"]
        case .userPermissions:
            content = json("UserPermissions", ["asked": ["value": OpenAPIExamples.userPermissions]])
        case .openapi:
            content = ["application/json": ["schema": ["type": "object"], "example": ["openapi": "3.1.0"]]]
        default:
            content = [
                "text/plain": ["schema": ["type": "string"], "example": "ok\n"],
                "application/json": [
                    "schema": .reference("schemas/Health"), "example": ["status": "pass", "draining": false],
                ],
            ]
        }
        if route != .openapi { headers.append("Cache-Control") }
        var members: [OpenAPIValue.Member] = [
            .init(name: "description", value: .string(description(route))),
            .init(name: "headers", value: references(headers)),
        ]
        if let content { members.append(.init(name: "content", value: content)) }
        return .object(members)
    }

    private static func description(_ route: Route) -> String {
        switch route {
        case .verify: "The token is accepted."
        case .nonces: "The nonce, and until when it is good."
        case .introspect: "Whether the token is active; of one that is not, nothing more is told."
        case .auth: "The token is good; what it says is in the fields."
        case .userPermissions: "The person's permissions."
        case .openapi: "The document."
        default: "Yes."
        }
    }

    private static func problem(_ status: Int, _ codes: [ProblemCode]) -> OpenAPIValue {
        var headers = ["X-Request-Id", "Cache-Control"]
        // A server that cannot read the request, or sheds load, knows no more than these.
        if codes.contains(where: { $0.retryAfterSeconds != nil }) { headers.append("Retry-After") }
        if status == 401 || status == 403 { headers.append("WWW-Authenticate") }
        if status == 405 { headers.append("Allow") }
        let examples = codes.map { code in
            OpenAPIValue.Member(name: code.text, value: ["value": OpenAPIExamples.problem(code)])
        }
        return [
            "description": .string(codes.map { "`\($0.text)`: \($0.title)." }.joined(separator: " ")),
            "headers": references(headers),
            "content": [
                "application/problem+json": [
                    "schema": .reference("schemas/Problem"), "examples": .object(examples),
                ]
            ],
        ]
    }

    private static func references(_ headers: [String]) -> OpenAPIValue {
        .object(headers.map { .init(name: $0, value: OpenAPIValue.reference("headers/\($0)")) })
    }

    private static func json(_ schema: String, _ examples: OpenAPIValue) -> OpenAPIValue {
        ["application/json": ["schema": .reference("schemas/\(schema)"), "examples": examples]]
    }
}
