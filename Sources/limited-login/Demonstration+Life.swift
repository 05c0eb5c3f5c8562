extension Demonstration {
    /// The whole life of a login, as lines for a shell: a login, its permissions, one of them revoked, the login revoked.
    static func life(service: String, issuer: String) -> [String] {
        let permissions = "\(service)/users/$user/permissions"
        return [
            "",
            "The life of a login, all in one terminal:",
            "",
            "call() { curl -sS -w '\\n%{http_code}\\n' -H 'X-Api-Key: \(DemonstrationFiles.clientKey)' \"$@\"; }",
            "# the app logs in (here the stand-in plays Facebook); the person turns one permission down",
            "token=$(curl -sS '\(issuer)/tokens?declined=user_friends' "
                + "-d '{\"nonce\":\"n-1\",\"email\":\"jane@example.com\"}' | cut -d'\"' -f4)",
            "# the backend has the token judged -> 200",
            "call \(service)/verify -H 'Content-Type: application/json' "
                + "-d \"{\\\"id_token\\\":\\\"$token\\\",\\\"nonce\\\":\\\"n-1\\\"}\"",
            "# what has the person granted, what is worth asking for, and what not? -> 200",
            "user=2954873201847263",
            "call \"\(permissions)?permissions=email,user_friends,user_birthday\"",
            "# take one permission back, and see it gone -> 204, 200",
            "call -X DELETE \"\(permissions)/email\"",
            "call \"\(permissions)\"",
            "# revoke the login -> 204, 200",
            "call -X DELETE \"\(permissions)\"",
            "call \"\(permissions)\"",
            "# or have Limited Login's own endpoint uninstall the app -> 204",
            "call \(service)/uninstall -H 'Content-Type: application/json' -d \"{\\\"id_token\\\":\\\"$token\\\"}\"",
        ]
    }
}
