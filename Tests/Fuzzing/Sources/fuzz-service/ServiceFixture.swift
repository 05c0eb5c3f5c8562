import LLHTTP
import LLJOSE
import LLStandIn
import LLTestSupport
import LimitedLogin
import LimitedLoginKeys
import Logging

@testable import LLService

/// A service with keys, a caller's key and every route, and one good token.
final class ServiceFixture {
    /// Stands for the good token in an input.
    static let tokenMark: UInt8 = 0x01
    static let appID = "123456789012345"

    private let token: [UInt8]
    private let callerKey: String
    private let handlers: [ServiceHandler]
    private let codes = Set(Rejection.Code.all.map(\.rawValue))

    init() async throws {
        let minter = try TokenMinter.make()
        var claims = MintedClaims(audience: Self.appID, subject: "42", nonce: "n", issuedAt: WallClock.unixSeconds())
        claims.confirmationThumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
        // The access token is the one of OpenID Connect Core appendix A.4.
        claims.accessTokenHash = "77QmUPtjPfzWtF2AnpK9RQ"
        token = Array(try minter.mint(claims).utf8)
        let cache = try JWKSetCache(sources: [FixedSource(bytes: TokenMinter.jwkSet([minter]))])
        _ = await cache.refresh()
        guard let (key, line) = ClientKeys.make(name: "backend") else { throw NoCaller() }
        callerKey = key
        let clients = try ClientKeys(parsing: Array(line.utf8), place: "clients")
        let registry = PrometheusRegistry(help: ServiceMetrics.help)
        let core = ServiceCore(
            settings: RuntimeSettings(
                verifier: TokenVerifier(
                    policy: try VerificationPolicy(appIDs: [Self.appID]),
                    nonces: NonceIssuer(secret: try NonceSecret(text: "0123456789abcdefghijklmnopqrstuv"))
                ),
                clients: clients,
                gateway: GatewaySettings(),
                tokens: TokenSettings(
                    TokenIssuer(
                        policy: try TokenIssuerPolicy(issuer: "https://a.example", audiences: ["b"]),
                        keys: try SigningKeySet([try SigningKey(generating: .es256)])
                    )
                )
            ),
            cache: cache,
            metrics: ServiceMetrics(registry: registry),
            logger: Logger(label: "fuzzing") { _ in SwiftLogNoOpLogHandler() },
            identifiers: RequestIdentifier(process: 1),
            exposition: { registry.render() }
        )
        handlers = [ListenerRole.service, .administration].map { ServiceHandler(core: core, listener: $0) }
    }

    /// Judges one input. Its first byte chooses the listener, the method, and the form of the rest: a whole request, or
    /// a target, header lines and a body with a zero byte between them.
    func judge(_ input: [UInt8]) {
        guard let choice = input.first else { return }
        let isWhole = choice & 1 != 0
        let rest = Array(input.dropFirst())
        let request = withToken(isWhole ? rest : assemble(rest, method: choice & 2 == 0 ? "POST" : "GET"))
        let driver = ConnectionDriver(handler: handlers[choice & 4 == 0 ? 0 : 1])
        driver.send(request)
        driver.endInput()
        // A request that waits for a key is answered when its wait is over.
        driver.advance(by: .seconds(30))
        guard driver.closed != nil else { fatalError("a connection outlives every deadline") }
        // An answer to HEAD looks like one that is cut short.
        let words = request.split(separator: UInt8(ascii: " "))
        let asksForHeads = words.contains { $0.suffix(4) == Array("HEAD".utf8)[...] }
        if !asksForHeads { check(driver, knowsToken: input.contains(Self.tokenMark)) }
    }

    private func assemble(_ rest: [UInt8], method: String) -> [UInt8] {
        let parts = rest.split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false)
        let body = parts.count > 2 ? Array(parts[2]) : []
        let length = withToken(body).count
        var request = Array("\(method) ".utf8) + (parts.first ?? []) + Array(" HTTP/1.1\r\nHost: h\r\n".utf8)
        request += Array("X-Api-Key: \(callerKey)\r\n".utf8)
        if parts.count > 1 { request += parts[1] }
        return request + Array("\r\nContent-Length: \(length)\r\n\r\n".utf8) + body
    }

    private func withToken(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        for byte in bytes {
            if byte == Self.tokenMark { result += token } else { result.append(byte) }
        }
        return result
    }

    /// Checks that every answer can be read, has a known code, and accepts no request without the token.
    private func check(_ driver: ConnectionDriver, knowsToken: Bool) {
        guard driver.received.isEmpty || !driver.responses.isEmpty else { fatalError("half an answer") }
        for response in driver.responses where response.status >= 200 {
            guard response["x-request-id"] != nil else { fatalError("an answer without a name") }
            guard response["content-type"]?.hasSuffix("json") == true, !response.body.isEmpty else { continue }
            // The description of the API is longer than any text that a client may send.
            var limits = JSONLimits()
            limits.byteCount = 1 << 20
            limits.nodeCount = 1 << 16
            limits.depth = 64
            var document = JSONDocument(limits: limits)
            guard (try? document.parse(response.body)) != nil else { fatalError("an answer that is no JSON") }
            if response.status >= 400 {
                guard let node = document.member("code", of: document.root, in: response.body.span),
                    codes.contains(document.string(node, in: response.body.span))
                else { fatalError("a problem without a known code") }
            } else if ["authentication_token", "issued_token_type"].contains(where: {
                document.member($0, of: document.root, in: response.body.span) != nil
            }) {
                guard knowsToken else { fatalError("somebody was let in without a token") }
            }
        }
    }
}

private struct NoCaller: Error {}

/// A JWK Set that never changes.
private struct FixedSource: JWKSetSource {
    let name = "fixed"
    let bytes: [UInt8]

    func fetch(validator: String?) throws(JWKSetSourceError) -> JWKSetAnswer {
        .fetched(JWKSetDocument(bytes: bytes))
    }

    func cancel() {}
}
