internal import HTTP1
internal import LimitedLogin
internal import Networking
internal import OpenSSL
internal import ReplayStores

/// `POST /nonces`: issues a nonce for one login.
final class NoncesEndpoint {
    private let core: ServiceCore
    private let workerSettings: WorkerSettings

    init(core: ServiceCore, workerSettings: WorkerSettings) {
        self.core = core
        self.workerSettings = workerSettings
    }

    /// The route is there only where nonces are issued.
    static func requireIssuer(_ settings: RuntimeSettings) throws(Problem) -> NonceIssuer {
        guard let nonces = settings.verifier.nonces else {
            throw Problem(.notFound, "No nonces are issued here; see LIMITED_LOGIN_NONCE_SECRET_FILE.")
        }
        return nonces
    }

    /// What body there is is uncompressed JSON (RFC 9110 sections 8.3, 8.4, 15.5.16); without one nothing is declared.
    static func requireJSON(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        response: inout HTTPResponse
    ) throws(Problem) {
        guard head.hasBody else { return }
        try VerifyEndpoint.requireJSON(head, bytes: bytes, response: &response)
    }

    func answer(_ body: Span<UInt8>, response: inout HTTPResponse) throws(Problem) {
        let request = try NonceRequest(body)
        let settings = workerSettings.settings
        let nonces = try Self.requireIssuer(settings)
        let appID = try appID(request, settings.verifier.policy.appIDs)
        let lifetime = try lifetime(request, settings.nonceLifetimeSeconds)
        // A nonce that no memory could vouch for would be refused when it comes back.
        guard let vouchesSince = core.replayStore.vouchesSince else { throw FirstUse.unavailable }
        let now = WallClock.unixMilliseconds()
        guard let random = try? RandomBytes.make(count: NonceIssuer.randomByteCount),
            let issued = nonces.issue(
                appID: appID,
                lifetimeSeconds: lifetime,
                now: now,
                dated: max(now, vouchesSince),
                randomBytes: random
            )
        else { throw Problem(.internalError, "No nonce could be made.") }
        response.addField("Content-Type: application/json")
        response.addField("Cache-Control: no-store")
        NonceAnswer.write(issued, to: &response.body)
        core.metrics.countIssuedNonce()
    }

    private func appID(_ request: NonceRequest, _ configured: [String]) throws(Problem) -> String {
        guard let appID = request.appID else {
            guard configured.count == 1 else {
                throw Problem(.invalidRequest, "Several apps are configured, so app_id must say whose login it is.")
            }
            return configured[0]
        }
        // Compared as bytes: equal text in another spelling is another app's.
        guard configured.contains(where: { $0.utf8.elementsEqual(appID.utf8) }) else {
            throw Problem(.unknownApp, "The app ID given is not one of the configured apps.")
        }
        return appID
    }

    private func lifetime(_ request: NonceRequest, _ configured: Int) throws(Problem) -> Int {
        guard let seconds = request.lifetimeSeconds else { return configured }
        guard (1...max(1, configured)).contains(seconds) else {
            throw Problem(.invalidRequest, "The member expires_in must be from 1 to \(configured) seconds.")
        }
        return seconds
    }
}
