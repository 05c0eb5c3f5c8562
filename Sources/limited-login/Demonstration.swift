internal import Bytes
internal import FoundationEssentials
internal import JOSE
internal import OpenSSL
internal import StandInIssuer

/// The requests that `demo` prints: one that is accepted, and one for each way a token is refused.
struct Demonstration: Sendable {
    /// The app id of the demonstration's tokens; nobody's.
    static let appID = "123456789012345"
    /// The nonce of the demonstration's login, in the shape the iOS SDK makes.
    static let nonce = "6F1B5A3C-0D2E-4F6A-9B7C-8D9E0F1A2B3C"

    /// One request with what it shows.
    struct Request: Sendable {
        /// What the request shows, and what it is answered.
        let title: String
        /// The status and the code (or `accepted`) that the service answers.
        let outcome: String
        /// The JSON body.
        let body: String
    }

    let requests: [Request]

    /// Mints the tokens; the keys are rotated on the way, so that one of them was signed by a key that is gone.
    ///
    /// - Parameter now: seconds since 1970.
    init(issuer: StandInIssuer, now: Int64) throws {
        let profile = Self.profileClaims
        func token(_ claims: String) throws -> String {
            try issuer.token(claims: "{\"nonce\":\"\(Self.nonce)\",\(claims)}", now: now)
        }
        let rotatedOut = try token(profile)
        try issuer.keys.rotate()
        try issuer.keys.rotate()
        let good = try token(profile)
        let expired = try token("\"iat\":\(now - 7200),\"exp\":\(now - 3600),\(profile)")
        let foreign = try token("\"aud\":\"999999999999999\",\(profile)")
        requests = [
            Request(
                title: "a genuine token of this login, with the permissions it needs",
                outcome: "200 accepted",
                body: Self.body(good, members: "\"permissions\":[\"email\",\"user_birthday\"]")
            ),
            Request(title: "a token past its expiry", outcome: "401 expired", body: Self.body(expired)),
            Request(title: "a token of another app", outcome: "401 invalid_audience", body: Self.body(foreign)),
            Request(
                title: "a token of another login",
                outcome: "401 nonce_mismatch",
                body: Self.body(good, nonce: "another-nonce")
            ),
            Request(
                title: "a token somebody changed",
                outcome: "401 invalid_signature",
                body: Self.body(Self.tampered(good))
            ),
            Request(
                title: "a token signed by a key that was rotated out",
                outcome: "401 unknown_key",
                body: Self.body(rotatedOut)
            ),
        ]
    }

    /// Every claim a Limited Login can bring.
    private static let profileClaims = """
        "email":"jane.doe@example.com","given_name":"Jane","middle_name":"Q","family_name":"Doe","name":"Jane Q Doe",\
        "picture":"https://platform-lookaside.fbsbx.com/platform/profilepic/?asid=2954873201847263&height=100",\
        "user_friends":["1122334455","5566778899"],"user_birthday":"01/02/1990","user_age_range":{"min":21},\
        "user_link":"https://www.facebook.com/jane","user_hometown":{"id":"112724962075996","name":"Martinez, \
        California"},"user_location":{"id":"110843418940484","name":"Seattle, Washington"},"user_gender":"female"
        """

    private static func body(_ token: String, nonce: String = nonce, members: String? = nil) -> String {
        let rest = members.map { ",\($0)" } ?? ""
        return "{\"id_token\":\"\(token)\",\"nonce\":\"\(nonce)\"\(rest)}"
    }

    /// The token with one character of its payload exchanged, so that its text is still base64url.
    private static func tampered(_ token: String) -> String {
        let parts = token.split(separator: ".")
        guard parts.count == 3 else { return token }
        var payload = Array(parts[1].utf8)
        let middle = payload.count / 2
        payload[middle] = payload[middle] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        return "\(parts[0]).\(String(decoding: payload, as: UTF8.self)).\(parts[2])"
    }
}

extension Demonstration {
    /// The whole life of a login, as lines for a shell: a nonce, a login with it, its verification, which uses the nonce
    /// up, a refresh, the permissions, one of them revoked, the login ended. The page on the API walks through the same.
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
            "# the SDK refreshes the token in the background, with the login's nonce; the session goes on => 200",
            "fresh=$(curl -sS \(issuer)/refresh -d \"{\\\"id_token\\\":\\\"$token\\\"}\" | cut -d'\"' -f4)",
            "again() { call \(service)/verify -H 'Content-Type: application/json' "
                + "-d \"{\\\"id_token\\\":\\\"$fresh\\\",\\\"issued_nonce\\\":true,\\\"subject\\\":\\\"1000200030004000\\\"}\"; }",
            "again",
            "# what has the person granted, what is worth asking for, and what not? => 200",
            "user=1000200030004000",
            "call \"\(permissions)?permissions=email,user_friends,user_birthday\"",
            "# take one permission back, and see it gone => 204, 200",
            "call -X DELETE \"\(permissions)/email\"",
            "call \"\(permissions)\"",
            "# have Limited Login's own endpoint uninstall the app; from now on the login's tokens are refused => 204, 401",
            "call \(service)/uninstall -H 'Content-Type: application/json' -d \"{\\\"id_token\\\":\\\"$fresh\\\"}\"",
            "again",
            "# or revoke the login at Graph, which takes the permissions back too => 204, 200",
            "call -X DELETE \"\(permissions)\"",
            "call \"\(permissions)\"",
            "# or end the person's logins here, without asking Facebook => 204",
            "call \(service)/revocations -H 'Content-Type: application/json' -d \"{\\\"user_id\\\":\\\"$user\\\"}\"",
        ]
    }
}

/// The files that a demonstration's service is configured with: they are needed while it starts, and gone after.
struct DemonstrationFiles {
    /// The key of the demonstration's caller. It is no secret, and nothing but a demonstration takes it.
    static let clientKey = "demo"
    /// The secret of the demonstration's app, made anew each time.
    let appSecret: String
    let clientKeys: String
    let appSecrets: String
    private let folder: URL

    init(appID: String) throws {
        // A folder of its own, which nobody else may look into.
        folder = FileManager.default.temporaryDirectory.appending(path: "limited-login-demo-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: folder,
            withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700]
        )
        appSecret = Hexadecimal.encode(try RandomBytes.make(count: 16))
        let digest = try SHA256.digest(of: Array(Self.clientKey.utf8).span).hexadecimal
        clientKeys = try Self.write("demo \(digest)\n", "client-keys", in: folder)
        appSecrets = try Self.write("\(appID) \(appSecret)\n", "app-secrets", in: folder)
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }

    private static func write(_ text: String, _ name: String, in folder: URL) throws -> String {
        let file = folder.appending(path: name)
        try Data(text.utf8).write(to: file)
        return file.path
    }
}
