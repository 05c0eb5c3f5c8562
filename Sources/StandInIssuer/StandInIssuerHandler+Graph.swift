internal import Bytes
internal import HTTP1
internal import Sockets

extension StandInIssuerHandler {
    /// The parts of `/v26.0/{user-id}/permissions/{permission}`.
    struct GraphPath {
        let userID: String
        let permission: String?

        init?(_ path: String) {
            let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
            guard (3...4).contains(parts.count), parts[0].first == "v", parts[2] == "permissions",
                !parts[1].isEmpty, parts[1].utf8.allSatisfy({ $0 &- 0x30 < 10 })
            else { return nil }
            userID = parts[1]
            permission = parts.count == 4 ? parts[3] : nil
        }
    }

    /// Answers a request of Graph's permissions; false where it is for something else.
    func answerGraph(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ response: inout HTTPResponse
    ) -> Bool {
        let text = Self.text(head.path, bytes)
        let query = Self.query(head, bytes)
        if answerAboutToken(text, query, head, bytes, &response) { return true }
        guard let path = GraphPath(text) else { return false }
        let authorization = head.value(of: "authorization", in: bytes).map { Self.text($0, bytes) }
        let answer: StandInGraph.Answer
        switch (graph.app(authorization: authorization, proof: query["appsecret_proof"]), head.method) {
        case (.failure(let refusal), _): answer = refusal.answer
        case (.success(let appID), .get) where path.permission == nil:
            answer = graph.permissions(of: path.userID, appID: appID)
        case (.success(let appID), .delete):
            answer = graph.revoke(path.permission, of: path.userID, appID: appID)
        case (.success, _): answer = .error(100, "Unsupported method.")
        }
        write(answer, &response)
        return true
    }

    /// `GET /v26.0/debug_token` and `/v26.0/me`, with or without the version; false where it is for something else.
    private func answerAboutToken(
        _ path: String,
        _ query: [String: String],
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ response: inout HTTPResponse
    ) -> Bool {
        let place = path.split(separator: "/").drop { $0.first == "v" }
        guard head.method == .get, place == ["debug_token"] || place == ["me"] else { return false }
        let authorization = head.value(of: "authorization", in: bytes).map { Self.text($0, bytes) }
        let now = WallClock.unixSeconds()
        let proof = query["appsecret_proof"]
        if place == ["debug_token"] {
            switch graph.app(authorization: authorization, proof: proof) {
            case .failure(let refusal): write(refusal.answer, &response)
            case .success(let appID):
                write(graph.accessTokens.debug(query["input_token"], asking: appID, now: now), &response)
            }
        } else {
            let token = authorization.map { String($0.dropFirst("Bearer ".count)) } ?? ""
            let secret = graph.appSecret
            let answer = graph.accessTokens.me(token, fields: query["fields"], proof: proof, secret: secret, now: now)
            write(answer, &response)
        }
        return true
    }

    func write(_ answer: StandInGraph.Answer, _ response: inout HTTPResponse) {
        response.status = answer.status
        response.addField("Content-Type: application/json; charset=UTF-8")
        response.body.append(contentsOf: answer.body.utf8)
    }

    /// What the query of `/tokens` says of permissions that the token does not show: `?declined=user_friends,email`,
    /// `?expired=…`.
    static func statuses(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> [String: String] {
        let query = query(head, bytes)
        var statuses: [String: String] = [:]
        for status in ["declined", "expired"] {
            for name in (query[status] ?? "").split(separator: ",") where isName(name) {
                statuses[String(name)] = status
            }
        }
        return statuses
    }

    private static func isName(_ text: Substring) -> Bool {
        text.utf8.allSatisfy { $0 &- 0x61 < 26 || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: ".") }
    }

    static func query(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> [String: String] {
        FormText.parameters(of: head.query.map { text($0, bytes) } ?? "")
    }

    static func text(_ range: Range<Int>, _ bytes: Span<UInt8>) -> String {
        String(decoding: range.map { bytes[$0] }, as: UTF8.self)
    }
}

/// Reads `application/x-www-form-urlencoded` text: a query, or a form.
enum FormText {
    /// The parameters by name; of one that repeats itself, the last.
    static func parameters(of text: String) -> [String: String] {
        var parameters: [String: String] = [:]
        for part in text.split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = pair.first else { continue }
            parameters[decoded(name)] = pair.count > 1 ? decoded(pair[1]) : ""
        }
        return parameters
    }

    private static func decoded(_ text: Substring) -> String {
        let bytes = Array(text.utf8)
        // A malformed escape stays as it is.
        return String(decoding: PercentEncoding.decode(bytes.span, bytes.indices, isForm: true) ?? bytes, as: UTF8.self)
    }
}
