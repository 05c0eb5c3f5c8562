internal import LimitedLogin

extension OpenAPIDocument {
    static var schemas: OpenAPIValue {
        [
            "Permission": [
                "type": "string", "description": "A permission of Limited Login.",
                "enum": .array(Permission.allCases.map { .string($0.rawValue) }),
            ],
            "VerifyRequest": [
                "description": "A token with exactly one thing that ties it to a login.",
                "oneOf": [
                    .reference("schemas/VerifyByNonce"), .reference("schemas/VerifyByRawNonce"),
                    .reference("schemas/VerifyByIssuedNonce"), .reference("schemas/VerifyBySubject"),
                ],
            ],
            "VerifyByNonce": verifyRequest("nonce", "The nonce given to the app; the claim equals it.", nonce),
            "VerifyByRawNonce": verifyRequest(
                "raw_nonce",
                "The nonce whose lower-case hexadecimal SHA-256 was given to Facebook.",
                nonce
            ),
            "VerifyByIssuedNonce": verifyRequest(
                "issued_nonce",
                "The claim nonce is one that `POST /nonces` issued for the token's app; it is used up.",
                ["type": "boolean", "const": true]
            ),
            "VerifyBySubject": verifyRequest(
                "subject",
                "The person of an existing session; the claim sub equals it.",
                ["type": "string", "minLength": 1, "maxLength": 255]
            ),
            "VerifyAnswer": verifyAnswer,
            "NonceRequest": nonceRequest,
            "NonceAnswer": nonceAnswer,
            "AuthenticationToken": authenticationToken,
            "Profile": profile,
            "Place": object(["id", "name"], ["id": text("Its Facebook id."), "name": text("Its name.")]),
            "AgeRange": object([], ["min": count("The least age."), "max": count("The greatest age.")]),
            "IntrospectRequest": introspectRequest,
            "IntrospectAnswer": introspectAnswer,
            "UserPermissions": userPermissions,
            "UninstallRequest": uninstallRequest,
            "Problem": problem,
            "Health": [
                "type": "object", "required": ["status", "draining"],
                "properties": [
                    "status": ["type": "string", "enum": ["pass", "fail"]],
                    "draining": ["type": "boolean"],
                    "keys": [
                        "type": "object", "description": "The state of the key cache.", "additionalProperties": true,
                    ],
                    "replay_store": [
                        "type": "object", "description": "The state of the memory of used nonces and tokens.",
                        "additionalProperties": true,
                    ],
                ],
            ],
        ]
    }

    static func text(_ description: String) -> OpenAPIValue {
        ["type": "string", "description": .string(description)]
    }

    static func count(_ description: String) -> OpenAPIValue {
        ["type": "integer", "description": .string(description)]
    }

    static func object(_ required: [String], _ properties: OpenAPIValue) -> OpenAPIValue {
        [
            "type": "object", "additionalProperties": false, "required": .array(required.map { .string($0) }),
            "properties": properties,
        ]
    }

    /// What is no nonce has white space in it, of any kind.
    private static var nonce: OpenAPIValue { ["type": "string", "pattern": "^[!-~]{1,512}$"] }

    private static func verifyRequest(_ binding: String, _ meaning: String, _ schema: OpenAPIValue) -> OpenAPIValue {
        object(
            ["id_token", binding],
            .object([
                .init(
                    name: "id_token",
                    value: [
                        "type": "string", "minLength": 1, "maxLength": 8192,
                        "description": "The id token: AuthenticationToken.current.tokenString.",
                    ]
                ),
                .init(name: binding, value: (["description": .string(meaning)] as OpenAPIValue).adding(schema)),
                .init(
                    name: "app_id",
                    value: [
                        "type": "string", "minLength": 1, "maxLength": 128,
                        "description": "The one configured app the token must be for.",
                    ]
                ),
                .init(
                    name: "permissions",
                    value: [
                        "type": "array", "maxItems": 64, "items": .reference("schemas/Permission"),
                        "description": "The permissions the caller needs.",
                    ]
                ),
            ])
        )
    }

    private static var nonceRequest: OpenAPIValue {
        object(
            [],
            [
                "app_id": [
                    "type": "string", "minLength": 1, "maxLength": 128,
                    "description": "The app that logs in; may be left out where one is configured.",
                ],
                "expires_in": [
                    "type": "integer", "minimum": 1, "maximum": 86_400,
                    "description": "A life shorter than the configured one, in seconds.",
                ],
            ]
        )
    }

    private static var nonceAnswer: OpenAPIValue {
        object(
            ["nonce", "app_id", "issued_at", "expires_at"],
            [
                "nonce": [
                    "type": "string", "pattern": "^[A-Za-z0-9_-]{60}$", "description": "What the app logs in with.",
                ],
                "app_id": text("The app whose login it is for."),
                "issued_at": count("When it was issued, in seconds since 1970."),
                "expires_at": count("From when on it is refused, in seconds since 1970."),
            ]
        )
    }

    private static var introspectRequest: OpenAPIValue {
        [
            "type": "object", "required": ["token"],
            "properties": [
                "token": ["type": "string", "minLength": 1, "maxLength": 8192, "description": "The id token."],
                "token_type_hint": text("Not looked at (RFC 7662 section 2.1)."),
            ],
        ]
    }

    private static var problem: OpenAPIValue {
        [
            "type": "object", "description": "A refusal (RFC 9457).",
            "required": ["type", "title", "status", "detail", "code", "request_id"],
            "properties": [
                "type": [
                    "type": "string", "format": "uri", "description": "`urn:limited-login:problem:` and the code.",
                ],
                "title": text("What went wrong, the same for every occurrence."),
                "status": ["type": "integer", "minimum": 400, "maximum": 599],
                "detail": text("One sentence on this occurrence, with the way out."),
                "code": [
                    "type": "string", "description": "The stable code to compare.",
                    "enum": .array(ProblemCode.all.map { .string($0.text) }),
                ],
                "claim": text("The claim at fault, if it is one."),
                "fbtrace_id": text("Facebook's own name of the failed call, for its support."),
                "request_id": text("The identifier of the request, as in the field X-Request-Id."),
            ],
        ]
    }
}
