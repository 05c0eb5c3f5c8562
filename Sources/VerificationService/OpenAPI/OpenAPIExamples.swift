/// The examples of the document.
enum OpenAPIExamples {
    /// The shape of a token; no key ever signed it.
    static let token = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6IjRiZTAifQ.eyJpc3MiOiJleGFtcGxlIn0.c2lnbmF0dXJl"

    static var verifyRequests: OpenAPIValue {
        [
            "nonce": [
                "summary": "A login that your backend began with this nonce",
                "value": ["id_token": .string(token), "nonce": "n-0S6_WzA2Mj", "permissions": ["email"]],
            ],
            "raw_nonce": [
                "summary": "A client that hands Facebook the nonce's SHA-256",
                "value": ["id_token": .string(token), "raw_nonce": "n-0S6_WzA2Mj"],
            ],
            "issued_nonce": [
                "summary": "A login that your backend began with a nonce of POST /nonces",
                "value": ["id_token": .string(token), "issued_nonce": true],
            ],
            "subject": [
                "summary": "A refresh of a session that already exists",
                "value": ["id_token": .string(token), "subject": "2954873201847263"],
            ],
        ]
    }

    static var verifyAnswer: OpenAPIValue {
        [
            "authentication_token": [
                "issuer": "https://www.facebook.com", "audience": "123456789012345", "subject": "2954873201847263",
                "token_id": "x7Qa.9f", "nonce": "n-0S6_WzA2Mj", "issued_at": 1_700_000_000,
                "expires_at": 1_700_003_600, "key_id": "4be0", "tracking": "limited",
            ],
            "profile": [
                "user_id": "2954873201847263", "name": "Jane Doe", "first_name": "Jane", "last_name": "Doe",
                "email": "jane@example.com", "image_url": "https://platform-lookaside.fbsbx.com/1",
                "link_url": "https://www.facebook.com/jane", "friend_ids": ["1122334455"], "birthday": "1990-01-02",
                "age_range": ["min": 21], "hometown": ["id": "112724962075996", "name": "Martinez, California"],
                "location": ["id": "110843418940484", "name": "Seattle, Washington"], "gender": "female",
                "permissions": ["public_profile", "email", "user_friends"], "is_limited": true,
            ],
            "missing_permissions": [],
            "claims": ["iss": "https://www.facebook.com", "aud": "123456789012345", "sub": "2954873201847263"],
        ]
    }

    static var nonceRequests: OpenAPIValue {
        [
            "plain": ["summary": "Where one app is configured", "value": [:]],
            "app": [
                "summary": "One of several apps, for two minutes",
                "value": ["app_id": "123456789012345", "expires_in": 120],
            ],
        ]
    }

    static var nonceAnswer: OpenAPIValue {
        [
            "nonce": "AQGLz-VoewGLz-6QOwABAgMEBQYHCAkKCwwNDg-FkKNf2eaRfRIVxhUvZIeQ", "app_id": "123456789012345",
            "issued_at": 1_700_000_000, "expires_at": 1_700_000_600,
        ]
    }

    static var introspectAnswer: OpenAPIValue {
        [
            "active": true, "iss": "https://www.facebook.com", "sub": "2954873201847263", "aud": "123456789012345",
            "client_id": "123456789012345", "jti": "x7Qa.9f", "exp": 1_700_003_600, "iat": 1_700_000_000,
            "scope": "public_profile email", "nonce": "n-0S6_WzA2Mj", "name": "Jane Doe", "email": "jane@example.com",
        ]
    }

    static var userPermissions: OpenAPIValue {
        [
            "user_id": "2954873201847263", "app_id": "123456789012345", "granted": ["email", "public_profile"],
            "declined": ["user_friends"], "expired": [], "missing": ["user_birthday"],
            "declined_requested": ["user_friends"],
        ]
    }

    static func problem(_ code: ProblemCode) -> OpenAPIValue {
        [
            "type": .string("urn:limited-login:problem:\(code.text)"), "title": .string(code.title),
            "status": .integer(code.status), "detail": .string("\(code.title)."), "code": .string(code.text),
            "request_id": "f3a91c02-1f-3",
        ]
    }
}
