extension OpenAPIDocument {
    static var verifyAnswer: OpenAPIValue {
        object(
            ["authentication_token", "profile", "claims"],
            [
                "authentication_token": .reference("schemas/AuthenticationToken"),
                "profile": .reference("schemas/Profile"),
                "missing_permissions": permissions("Those asked for that the token does not show."),
                "unverifiable_permissions": permissions("Those asked for that yield no claim."),
                "claims": [
                    "type": "object", "description": "Every claim of the token.", "additionalProperties": true,
                ],
            ]
        )
    }

    static var authenticationToken: OpenAPIValue {
        object(
            [
                "issuer", "audience", "subject", "token_id", "issued_at", "expires_at", "key_id", "tracking",
            ],
            [
                "issuer": text("The claim iss."), "audience": text("The claim aud: the app."),
                "subject": text("The claim sub: the person, within the app."), "token_id": text("The claim jti."),
                "nonce": text("The claim nonce."),
                "issued_at": ["type": "number", "description": "The claim iat, in seconds since 1970."],
                "expires_at": ["type": "number", "description": "The claim exp, in seconds since 1970."],
                "key_id": text("The key that signed it."),
                "tracking": [
                    "type": "string", "enum": ["limited", "enabled"],
                    "description": "`enabled` where an access token came with it.",
                ],
            ]
        )
    }

    static var profile: OpenAPIValue {
        object(
            ["user_id", "permissions", "is_limited"],
            [
                "user_id": text("The person, within the app."), "name": text("The whole name."),
                "first_name": text("The first name."), "middle_name": text("The middle name."),
                "last_name": text("The last name."), "email": text("The e-mail address the person shows Facebook."),
                "image_url": text("The picture; the link expires."), "link_url": text("The person's page."),
                "friend_ids": [
                    "type": "array", "items": ["type": "string"], "description": "Friends who use the same app.",
                ],
                "birthday": text("`YYYY-MM-DD`, `0000-MM-DD` without a year, or `YYYY`."),
                "age_range": .reference("schemas/AgeRange"), "hometown": .reference("schemas/Place"),
                "location": .reference("schemas/Place"), "gender": text("The gender."),
                "permissions": permissions("Those whose claims the token has."),
                "is_limited": ["type": "boolean", "description": "Whether `tracking` is `limited`."],
            ]
        )
    }

    static var introspectAnswer: OpenAPIValue {
        [
            "type": "object", "required": ["active"],
            "properties": [
                "active": ["type": "boolean", "description": "Whether the token is good."],
                "iss": text("The issuer."), "sub": text("The person, within the app."), "aud": text("The app."),
                "client_id": text("The app, once more."), "jti": text("The token's own identifier."),
                "exp": count("When it expires, in seconds since 1970."),
                "iat": count("When it was issued, in seconds since 1970."),
                "scope": text("The permissions its claims show, separated by spaces."),
                "nonce": text("The nonce of the login."), "name": text("The whole name."),
                "given_name": text("The first name."), "middle_name": text("The middle name."),
                "family_name": text("The last name."), "email": text("The e-mail address."),
                "picture": text("The picture."),
            ],
        ]
    }

    private static func permissions(_ description: String) -> OpenAPIValue {
        ["type": "array", "items": .reference("schemas/Permission"), "description": .string(description)]
    }
}
