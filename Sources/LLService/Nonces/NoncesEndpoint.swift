internal import LLHTTP
internal import LLJOSE
internal import LLStores
package import LimitedLogin

/// `POST /nonces`: issues a nonce for one login.
enum NoncesEndpoint {
    static let answer: Route.Answer = { worker, exchange, bytes throws(Rejection) in
        let request = try NonceRequest(bytes.extracting(exchange.body))
        let settings = worker.settings
        guard let nonces = settings.verifier.nonces else { throw Requirement.nonceIssuer.problem }
        let appID = try settings.app(named: request.appID)
        let longest = settings.nonceLifetimeSeconds
        let lifetime = request.lifetimeSeconds ?? longest
        guard (1...max(1, longest)).contains(lifetime) else {
            throw Rejection(.invalidRequest, "The member expires_in must be from 1 to \(longest) seconds.")
        }
        // A nonce that the replay store could not check would be refused at its return.
        let now = WallClock.unixMilliseconds()
        guard let date = worker.core.replayStore.nonceDate(now: now) else { throw Rejection(.replayStoreUnavailable) }
        guard let random = try? RandomBytes.make(count: NonceIssuer.randomByteCount),
            let issued = nonces.issue(
                appID: appID,
                lifetime: .seconds(lifetime),
                now: now,
                dated: date,
                randomBytes: random
            )
        else { throw Rejection(.internalError, "No nonce could be made.") }
        VerifyEndpoint.addFields(to: &exchange.response)
        NonceAnswer.write(issued, to: &exchange.response.body)
        worker.core.metrics.count(.issuedNonce)
        return .done()
    }
}

/// The body of `POST /nonces`, read strictly. Its members `permissions` and `tracking` are checked and not kept: a name
/// that the login cannot ask for is refused before the person sees a dialog for it.
struct NonceRequest {
    /// Greatest body, in bytes: 64 names of permissions, and some spare space.
    static let bodyLimit = 4_096

    private(set) var appID: String?
    private(set) var lifetimeSeconds: Int?

    init(_ body: Span<UInt8>) throws(Rejection) {
        guard !body.isEmpty else { return }
        var document = JSONDocument(limits: .ofRequest)
        try document.parseObject(body)
        var tracking = LoginTracking.limited
        var permissions: Int?
        for name in document.children(of: document.root) {
            let (member, value) = (document.string(name, in: body), name + 1)
            switch member {
            case "app_id": appID = String(decoding: try document.anyText(name, in: body), as: UTF8.self)
            case "expires_in":
                guard document.kind(value) == .number, let number = document.integer(value, in: body) else {
                    throw Rejection(.invalidRequest, "The member expires_in must be a whole number of seconds.")
                }
                lifetimeSeconds = Int(clamping: number)
            case "permissions": permissions = value
            case "tracking":
                guard document.isString(value), let known = LoginTracking(rawValue: document.string(value, in: body))
                else { throw Rejection(.invalidRequest, "The member tracking is limited or enabled.") }
                tracking = known
            default:
                let known = ["app_id", "expires_in", "permissions", "tracking"]
                throw RequestMistake.unknownMember(member, known: known)
            }
        }
        guard let permissions else { return }
        _ = try document.permissions(permissions, in: body, ofLimitedLogin: tracking == .limited)
    }
}

package enum NonceAnswer {
    package static func write(_ issued: IssuedNonce, to bytes: inout [UInt8]) {
        JSONWriter.raw("{", to: &bytes)
        JSONWriter.member("nonce", issued.nonce.value, to: &bytes)
        JSONWriter.member("app_id", issued.appID, to: &bytes)
        JSONWriter.member("issued_at", Int(clamping: issued.issuedAt.wholeSeconds), to: &bytes)
        JSONWriter.member("expires_at", Int(clamping: issued.expiresAt.wholeSeconds), to: &bytes)
        JSONWriter.raw("}", to: &bytes)
    }
}

/// The file of nonce secrets: one or two lines of 32 to 128 visible ASCII characters. The first issues; both recognise.
package enum NonceSecretsFile {
    /// Greatest size of the file, in bytes: two secrets and some comments.
    package static let byteLimit = 16_384

    /// The issuer from the file's text; messages call the file `place` and never quote it.
    package static func issuer(parsing text: [UInt8], place: String) throws(ConfigurationError) -> NonceIssuer {
        let (secret, former) = try FileLine.secrets(
            of: text,
            place: place,
            none: "the file holds no secret; 'limited-login nonce secret' makes one"
        ) { line throws(ConfigurationError) in
            do throws(InvalidConfiguration) {
                return try NonceSecret(text: String(decoding: line.text, as: UTF8.self))
            } catch {
                throw line.error(error.description)
            }
        }
        return NonceIssuer(secret: secret, former: former)
    }
}
