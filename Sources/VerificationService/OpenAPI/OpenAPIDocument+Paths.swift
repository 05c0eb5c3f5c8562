internal import HTTP1

extension OpenAPIDocument {
    /// The routes of the service's own listener.
    static let documented: [Route] = [
        .verify, .nonces, .introspect, .auth, .userPermissions, .userPermission, .uninstall, .openapi, .livez, .readyz,
        .healthz,
    ]

    static var paths: OpenAPIValue {
        var members: [OpenAPIValue.Member] = []
        for route in documented {
            members.append(.init(name: "\(route.path)", value: pathItem(route, isBelow: false)))
            // `/auth` stands for the paths below it too.
            if route == .auth { members.append(.init(name: "/auth/{path}", value: pathItem(route, isBelow: true))) }
        }
        return .object(members)
    }

    private static func pathItem(_ route: Route, isBelow: Bool) -> OpenAPIValue {
        var parameters = [OpenAPIValue.reference("parameters/RequestID")]
        if isBelow { parameters.append(.reference("parameters/Path")) }
        parameters += route.parameters.map { .reference("parameters/\($0)") }
        var members: [OpenAPIValue.Member] = [.init(name: "parameters", value: .array(parameters))]
        for method in route.methods {
            members.append(
                .init(name: "\(method.name)".lowercased(), value: operation(route, method, isBelow: isBelow))
            )
        }
        return .object(members)
    }

    private static func operation(_ route: Route, _ method: HTTPMethod, isBelow: Bool) -> OpenAPIValue {
        let name = "\(method.name)".lowercased()
        var members: [OpenAPIValue.Member] = [
            .init(name: "operationId", value: .string(route.operationID(name) + (isBelow ? "Below" : ""))),
            .init(name: "tags", value: [.string(route.tag)]),
            .init(name: "summary", value: .string(route.summary(of: method))),
            .init(name: "security", value: route.security),
        ]
        if route == .userPermissions, method == .get {
            members.append(.init(name: "parameters", value: [.reference("parameters/NeededPermissions")]))
        }
        if let body = route.requestBody { members.append(.init(name: "requestBody", value: body)) }
        members.append(.init(name: "responses", value: OpenAPIResponses.of(route, method)))
        return .object(members)
    }
}

extension Route {
    fileprivate var parameters: [String] {
        switch self {
        case .userPermissions: ["UserID", "OnlyAppID"]
        case .userPermission: ["UserID", "PermissionName", "OnlyAppID"]
        case .auth: ["Permissions", "AppID", "OtherQuery"]
        case .livez, .readyz, .healthz: ["Verbose"]
        default: []
        }
    }

    fileprivate func operationID(_ method: String) -> String {
        switch self {
        case .verify: "verify"
        case .introspect: "introspect"
        case .nonces: "issueNonce"
        case .openapi: method + "OpenAPI"
        case .userPermissions: method == "get" ? "listPermissions" : "revokeLogin"
        case .userPermission: "revokePermission"
        case .uninstall: "uninstall"
        default: method + "\(path)".dropFirst().prefix(1).uppercased() + "\(path)".dropFirst(2)
        }
    }

    fileprivate var tag: String {
        switch self {
        case .verify, .introspect, .nonces: "tokens"
        case .userPermissions, .userPermission, .uninstall: "permissions"
        case .auth: "gateways"
        default: "service"
        }
    }

    fileprivate func summary(of method: HTTPMethod) -> String {
        switch self {
        case .userPermissions:
            method == .get
                ? "What a person has granted the app, by Facebook's Graph API."
                : "Revokes the whole login: the person has to log in to the app anew."
        case .userPermission: "Revokes one permission."
        case .uninstall: "Uninstalls the app for the person of an id token, by Limited Login's own endpoint."
        case .verify: "Judges an id token and returns the Profile."
        case .introspect: "OAuth 2.0 Token Introspection (RFC 7662)."
        case .nonces: "Issues a nonce for one login, which `issued_nonce` of `/verify` recognises and uses up."
        case .auth: "Tells a gateway whether a request comes with a good token; the head alone decides."
        case .openapi: "This document."
        case .livez: "Whether the process serves."
        case .readyz: "Whether it has usable keys and is not stopping."
        case .healthz: "The same as /livez, under its older name."
        case .metrics, .unmatched: ""
        }
    }

    fileprivate var security: OpenAPIValue {
        switch self {
        // Without configured callers anybody may ask.
        case .verify, .nonces: [[:], ["clientKey": []], ["clientKeyField": []], ["clientBasic": []]]
        case .introspect, .userPermissions, .userPermission, .uninstall:
            [["clientKey": []], ["clientKeyField": []], ["clientBasic": []]]
        case .auth: [["idToken": []]]
        default: []
        }
    }

    fileprivate var requestBody: OpenAPIValue? {
        switch self {
        case .verify:
            return [
                "required": true, "description": "At most 16 KiB of strict JSON: no unknown member, none twice.",
                "content": [
                    "application/json": [
                        "schema": .reference("schemas/VerifyRequest"), "examples": OpenAPIExamples.verifyRequests,
                    ]
                ],
            ]
        case .nonces:
            return [
                "required": false,
                "description": "May be empty where one app is configured. Strict JSON: no unknown member, none twice.",
                "content": [
                    "application/json": [
                        "schema": .reference("schemas/NonceRequest"), "examples": OpenAPIExamples.nonceRequests,
                    ]
                ],
            ]
        case .introspect:
            return [
                "required": true,
                "content": [
                    "application/x-www-form-urlencoded": [
                        "schema": .reference("schemas/IntrospectRequest"),
                        "examples": ["token": ["value": ["token": .string(OpenAPIExamples.token)]]],
                    ]
                ],
            ]
        case .uninstall:
            return [
                "required": true, "description": "At most 16 KiB of strict JSON: no unknown member, none twice.",
                "content": [
                    "application/json": [
                        "schema": .reference("schemas/UninstallRequest"),
                        "examples": ["token": ["value": ["id_token": .string(OpenAPIExamples.token)]]],
                    ]
                ],
            ]
        default: return nil
        }
    }
}
