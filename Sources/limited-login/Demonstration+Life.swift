extension Demonstration {
    /// The whole life of a login, as lines for a shell: a nonce, a login with it, its verification, which uses the nonce
    /// up, the permissions, one of them revoked, the login revoked. `README.md` walks through the same.
    static func life(service: String, issuer: String) -> [String] {
        let permissions = "\(service)/users/$user/permissions"
        return [
            "",
            "The life of a login, all in one terminal:",
            "",
            "call() { curl -sS -w '\\n%{http_code}\\n' -H 'X-Api-Key: \(DemonstrationFiles.clientKey)' \"$@\"; }",
            "# the backend issues a nonce for one login",
            "nonce=$(curl -sS -X POST \(service)/nonces -H 'X-Api-Key: \(DemonstrationFiles.clientKey)' "
                + "-H 'Content-Type: application/json' -d '{}' | cut -d'\"' -f4)",
            "# the app logs in with it (the stand-in plays Facebook); the person turns one permission down",
            "token=$(curl -sS '\(issuer)/tokens?declined=user_friends' "
                + "-d \"{\\\"nonce\\\":\\\"$nonce\\\",\\\"sub\\\":\\\"1000200030004000\\\",\\\"email\\\":\\\"jo@example.com\\\"}\" "
                + "| cut -d'\"' -f4)",
            "# the backend has the token judged, which uses the nonce up: the second time it is refused => 200, 401",
            "verify() { call \(service)/verify -H 'Content-Type: application/json' "
                + "-d \"{\\\"id_token\\\":\\\"$token\\\",\\\"issued_nonce\\\":true}\"; }",
            "verify",
            "verify",
            "# what has the person granted, what is worth asking for, and what not? => 200",
            "user=1000200030004000",
            "call \"\(permissions)?permissions=email,user_friends,user_birthday\"",
            "# take one permission back, and see it gone => 204, 200",
            "call -X DELETE \"\(permissions)/email\"",
            "call \"\(permissions)\"",
            "# revoke the login => 204, 200",
            "call -X DELETE \"\(permissions)\"",
            "call \"\(permissions)\"",
            "# or have Limited Login's own endpoint uninstall the app => 204",
            "call \(service)/uninstall -H 'Content-Type: application/json' -d \"{\\\"id_token\\\":\\\"$token\\\"}\"",
        ]
    }
}
