internal import LimitedLogin

/// The OpenAPI 3.1 document of the service's listener, made from ``Route`` and ``ProblemCode``: what they say is what
/// the document says, and a test compares both with the answers.
package enum OpenAPIDocument {
    /// The document as JSON; made once, when it is first asked for.
    package static let bytes: [UInt8] = {
        var bytes: [UInt8] = []
        document.write(to: &bytes)
        return bytes
    }()

    /// The version of the HTTP interface, by semantic versioning: it changes with what clients can see.
    package static let version = "1.0.0"

    static var document: OpenAPIValue {
        [
            "openapi": "3.1.0",
            "info": [
                "title": "limited-login",
                "version": .string(version),
                "summary": "Decides whether a Facebook Limited Login id token is genuine.",
                "description": .string(
                    "Judges id tokens: the signature, the issuer, the app, the times and the login they belong to. "
                        + "Every refusal has a stable code; an outage of the issuer's keys is 503, never 401."
                ),
            ],
            "servers": [["url": "/", "description": "the service's own listener"]],
            "tags": [
                ["name": "tokens", "description": "What app backends and OAuth clients ask."],
                [
                    "name": "permissions",
                    "description": "What asks Facebook's Graph API; there when `app_secrets_file` is set.",
                ],
                ["name": "gateways", "description": "What gateways ask; there when `gateway` is enabled."],
                ["name": "service", "description": "How the service is, and this document."],
            ],
            "paths": paths,
            "components": [
                "schemas": schemas,
                "parameters": parameters,
                "headers": headers,
                "securitySchemes": securitySchemes,
            ],
        ]
    }

    private static var securitySchemes: OpenAPIValue {
        [
            "clientKey": [
                "type": "http", "scheme": "bearer", "description": "The caller's key, where callers are configured.",
            ],
            "clientKeyField": [
                "type": "apiKey", "in": "header", "name": "X-Api-Key", "description": "The same key in another field.",
            ],
            "clientBasic": [
                "type": "http", "scheme": "basic", "description": "The caller's name and key (RFC 6749 section 2.3.1).",
            ],
            "idToken": [
                "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
                "description": "The person's id token (RFC 6750 section 2.1).",
            ],
        ]
    }

    private static var parameters: OpenAPIValue {
        [
            "RequestID": [
                "name": "X-Request-Id", "in": "header", "required": false,
                "description":
                    "The caller's name for the request; one that is not 1 to 128 of `[A-Za-z0-9._-]` is replaced.",
                "schema": ["type": "string"],
                "example": "checkout-7f3a",
            ],
            "Permissions": [
                "name": "permissions", "in": "query", "required": false,
                "description": "What the token must show, separated by commas.",
                "schema": ["type": "string", "pattern": .string(permissionsPattern)],
                "example": "email,user_birthday",
            ],
            "AppID": [
                "name": "app_id", "in": "query", "required": false,
                "description": "The one configured app the token must be for.",
                "schema": ["type": "string", "minLength": 1, "maxLength": 128],
                "example": "123456789012345",
            ],
            "UserID": [
                "name": "user_id", "in": "path", "required": true,
                "description": "The person's app-scoped id: the claim sub.",
                "schema": ["type": "string", "pattern": "^[0-9]{1,32}$"],
                "example": "2954873201847263",
            ],
            "PermissionName": [
                "name": "permission", "in": "path", "required": true,
                "description": "The name of the permission to revoke.",
                "schema": ["type": "string", "pattern": "^[a-z_]{1,64}$"],
                "example": "email",
            ],
            "OnlyAppID": [
                "name": "app_id", "in": "query", "required": false,
                "description": "The configured app it is about; needed where several are configured.",
                "schema": ["type": "string", "pattern": "^[0-9A-Za-z._-]{1,64}$"],
                "example": "123456789012345",
            ],
            "NeededPermissions": [
                "name": "permissions", "in": "query", "required": false,
                "description": "The permissions the app needs, at most 64, separated by commas.",
                "schema": ["type": "string", "pattern": "^[a-z_]{1,64}(,[a-z_]{1,64}){0,63}$"],
                "example": "email,user_friends",
            ],
            "Path": [
                "name": "path", "in": "path", "required": true,
                "description": "What the gateway's client asked for; not looked at.",
                "schema": ["type": "string"],
                "example": "orders",
            ],
            "OtherQuery": [
                "name": "query", "in": "query", "required": false, "style": "form", "explode": true,
                "description": "What else the gateway's client asked with; not looked at.",
                "schema": ["type": "object", "additionalProperties": true],
            ],
            "Verbose": [
                "name": "verbose", "in": "query", "required": false, "allowEmptyValue": true,
                "description": "Empty, `1` or `true`: answers JSON with the state of the keys.",
                "schema": ["type": "string"],
                "example": "1",
            ],
        ]
    }

    private static var permissionsPattern: String {
        let names = Permission.allCases.map(\.rawValue).joined(separator: "|")
        return "^[ ,]*((\(names))([ ,]+|$))*$"
    }

    static var headers: OpenAPIValue {
        func text(_ description: OpenAPIValue, _ example: OpenAPIValue, required: Bool = true) -> OpenAPIValue {
            [
                "description": description, "required": .bool(required), "schema": ["type": "string"],
                "example": example,
            ]
        }
        return [
            "X-Request-Id": text("The caller's identifier of the request, else one of the service's.", "f3a91c02-1f-3"),
            "Cache-Control": text("Answers about tokens are never stored.", "no-store"),
            "WWW-Authenticate": text("The challenge (RFC 6750 section 3).", "Bearer error=\"invalid_token\""),
            "Allow": text("The methods of the path (RFC 9110 section 10.2.1).", "POST, OPTIONS"),
            "Retry-After": [
                "description": "Seconds after which another try makes sense.", "required": true,
                "schema": ["type": "integer", "minimum": 0], "example": 2,
            ],
            "X-Auth-Subject": text("The claim sub: the person, within the app.", "2954873201847263"),
            "X-Auth-Audience": text("The claim aud: the app.", "123456789012345"),
            "X-Auth-Expires": [
                "description": "The claim exp, in seconds since 1970.", "required": true,
                "schema": ["type": "integer"], "example": 1_700_003_600,
            ],
            "X-Auth-Email": text("The claim email, where the token has one.", "jane@example.com", required: false),
        ]
    }
}
