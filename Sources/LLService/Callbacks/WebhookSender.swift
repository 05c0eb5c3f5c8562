internal import LLBytes
package import LLHTTP
package import LLJOSE
internal import LimitedLogin
package import Logging

/// Every limit of a webhook's delivery, with its default and reason.
package struct WebhookLimits: Sendable {
    /// The whole delivery, including pauses and the wait for a thread. 8 s: Facebook waits for the answer meanwhile.
    package var deliveryTime: Duration = .seconds(8)
    /// One attempt. 4 s: a backend that hangs once still gets a second attempt.
    package var attemptTime: Duration = .seconds(4)
    package var attemptCount = 3
    /// The pause before the second attempt; before the third it is twice as long.
    package var firstPause: Duration = .milliseconds(250)
    /// Running deliveries. 4: with a backend that takes a tenth of a second these are 40 a second.
    package var threadCount = 4
    /// Deliveries that wait for a thread. 64: a backend of that speed accepts them in two seconds.
    package var queueLength = 64

    package init() {}

    var places: Int { threadCount + queueLength }
}

/// The reason why the backend was not reached or did not accept. The sentence quotes nothing of the backend's.
package struct WebhookFailure: Error, Sendable, Equatable {
    package enum Reason: String, Sendable, CaseIterable {
        case refused
        case timedOut = "timed_out"
        case unreachable
        case tlsFailed = "tls_failed"
        /// The answer's head was no HTTP or too long, or its body is not usable.
        case unreadable
        /// No attempt was made: too many deliveries were waiting.
        case unsent
    }

    let reason: Reason
    let sentence: String
    var isTransient = false
}

extension WebhookFailure {
    init(_ error: ClientError) {
        let (reason, isTransient): (Reason, Bool) =
            switch error {
            case .timedOut: (.timedOut, true)
            case .tls: (.tlsFailed, false)
            case .cancelled: (.unreachable, false)
            case .malformedResponse, .headTooLarge, .bodyTooLarge, .redirectRefused, .malformedRequest:
                (.unreadable, false)
            default: (.unreachable, true)
            }
        self.init(reason: reason, sentence: error.description, isTransient: isTransient)
    }
}

/// Sends callbacks to the backend, on queues of its own: no worker waits for a backend.
package final class WebhookSender: Sendable {
    package typealias Outcome = Result<DeletionStatus?, WebhookFailure>

    let limits: WebhookLimits
    private let client: HTTPSClient
    private let metrics: ServiceMetrics
    private let logger: Logger
    private let places: SharedPlaces

    package init(client: HTTPSClient, limits: WebhookLimits = .init(), metrics: ServiceMetrics, logger: Logger) {
        self.client = client
        self.limits = limits
        self.metrics = metrics
        self.logger = logger
        places = SharedPlaces("webhooks", placeLimit: limits.threadCount, queueLimit: limits.queueLength)
    }

    /// - Parameter done: Called from another thread, unless too many wait already.
    func submit(
        _ event: CallbackEvent,
        to target: WebhookTarget,
        until deadline: MonotonicInstant,
        trace: String?,
        _ done: @escaping @Sendable (Outcome) -> Void
    ) {
        let isQueued = places.submit {
            let outcome = CallTrace.$parent.withValue(trace) { self.deliver(event, to: target, until: deadline) }
            done(self.finish(event, outcome))
        }
        if !isQueued { done(refuse(event)) }
    }

    @discardableResult
    func refuse(_ event: CallbackEvent) -> Outcome {
        let failure = WebhookFailure(reason: .unsent, sentence: "too many deliveries are waiting")
        return finish(event, .failure(failure))
    }

    package func stop() { client.cancel() }

    /// Counts a delivery, and logs a failed one, with the person's hash alone.
    private func finish(_ event: CallbackEvent, _ outcome: Outcome) -> Outcome {
        guard case .failure(let failure) = outcome else {
            metrics.count(.webhook(nil))
            return outcome
        }
        metrics.count(.webhook(failure.reason))
        let hash = try? SHA256.digest(of: Array(event.userID.utf8).span).hexadecimal
        var facts = facts(of: event, failure.sentence)
        facts["user_id_sha256"] = "\(hash ?? "")"
        facts["result"] = "\(failure.reason.rawValue)"
        logger.error("callback not delivered", metadata: facts)
        return outcome
    }

    private func deliver(_ event: CallbackEvent, to target: WebhookTarget, until deadline: MonotonicInstant) -> Outcome
    {
        guard MonotonicClock.now() < deadline else {
            return .failure(WebhookFailure(reason: .unsent, sentence: "its time was over before a thread was free"))
        }
        var (pause, attempt) = (limits.firstPause, 1)
        while true {
            do throws(WebhookFailure) {
                return .success(try attemptOnce(event, to: target, until: deadline))
            } catch {
                let moment = MonotonicClock.now() + pause
                guard error.isTransient, attempt < limits.attemptCount, moment < deadline,
                    (try? client.pause(until: moment)) != nil
                else { return .failure(error) }
                (pause, attempt) = (pause * 2, attempt + 1)
            }
        }
    }

    /// One attempt, with a signature of this moment. A redirect is not followed: it would send the event elsewhere.
    private func attemptOnce(
        _ event: CallbackEvent,
        to target: WebhookTarget,
        until deadline: MonotonicInstant
    ) throws(WebhookFailure) -> DeletionStatus? {
        let request = try target.request(event, timestamp: WallClock.unixSeconds())
        var limits = HTTPSClientLimits()
        limits.fetchTimeout = self.limits.attemptTime
        let response: HTTPSResponse
        do throws(ClientError) {
            // The status alone tells that the backend accepted it.
            response = try client.send(request, limits: limits, until: deadline, needsBody: false)
        } catch {
            throw WebhookFailure(error)
        }
        guard (200..<300).contains(response.status) else {
            // RFC 9110 section 15: these errors may pass in a moment.
            let isTransient = response.status >= 500 || [408, 425, 429].contains(response.status)
            throw WebhookFailure(reason: .refused, sentence: "it answered \(response.status)", isTransient: isTransient)
        }
        // Only the answer about deleted data is for a person.
        guard event.kind == .dataDeletion else { return nil }
        // The backend accepted the event, but its answer for the person cannot be passed on.
        let warning: Logger.Message = "answer to a callback not used"
        if let fault = response.bodyFault { logger.warning(warning, metadata: facts(of: event, fault.description)) }
        do throws(WebhookFailure) {
            return try DeletionStatus(answer: response.body)
        } catch {
            logger.warning(warning, metadata: facts(of: event, error.sentence))
            return nil
        }
    }

    private func facts(of event: CallbackEvent, _ reason: String) -> Logger.Metadata {
        [
            "callback": "\(event.kind.rawValue)", "app_id": "\(event.appID)", "webhook_id": "\(event.id)",
            "reason": "\(reason)",
        ]
    }
}

package struct WebhookTarget: Sendable, Equatable {
    let url: HTTPURL
    let secrets: WebhookSecrets
    /// The page of ``DeletionStatus``, without a query.
    let statusURL: HTTPURL

    package init(url: HTTPURL, secrets: WebhookSecrets, statusURL: HTTPURL) {
        self.url = url
        self.secrets = secrets
        self.statusURL = statusURL
    }

    func request(_ event: CallbackEvent, timestamp: Int64) throws(WebhookFailure) -> HTTPSRequest {
        let body = event.content
        guard let signature = try? secrets.signature(id: event.id, timestamp: timestamp, body: body) else {
            throw WebhookFailure(reason: .unsent, sentence: "it could not be signed")
        }
        let fields: [HTTPSResponse.Field] = [
            ("webhook-id", event.id), ("webhook-timestamp", "\(timestamp)"), ("webhook-signature", signature),
        ]
        return HTTPSRequest(.post, url, headers: fields, body: .json(body))
    }
}

/// The page with the state of a person's data deletion, and the code for it (Meta, "Data Deletion Request Callback").
package struct DeletionStatus: Sendable, Equatable {
    /// Greatest length of both in bytes: browsers and dashboards certainly accept it.
    private static let byteLimit = 2_048

    let url: String
    let confirmationCode: String
}

extension DeletionStatus {
    /// The backend's own answer; nil unless it is a JSON object with both members.
    init?(answer: [UInt8]) throws(WebhookFailure) {
        let fault = "its url is none that people can open, or its confirmation_code is not of visible characters"
        let unusable = WebhookFailure(reason: .unreadable, sentence: fault)
        var document = JSONDocument(limits: JSONLimits(byteCount: 65_536))
        guard (try? document.parse(answer.span)) != nil, document.isObject(document.root),
            let url = document.member("url", of: document.root, in: answer.span),
            let code = document.member("confirmation_code", of: document.root, in: answer.span)
        else { return nil }
        guard document.isString(url), document.isString(code) else { throw unusable }
        let place = document.string(url, in: answer.span)
        let name = document.string(code, in: answer.span)
        // A fragment allows the bytes of a path (RFC 3986 section 3.5), so it is checked as one.
        let judged = place.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).joined(separator: "/")
        guard place.utf8.count <= Self.byteLimit, (try? HTTPURL(parsing: judged)) != nil,
            (1...Self.byteLimit).contains(name.utf8.count), name.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw unusable }
        self.init(url: place, confirmationCode: name)
    }

    func write(to body: inout [UInt8]) {
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("url", url, to: &body)
        JSONWriter.member("confirmation_code", confirmationCode, to: &body)
        JSONWriter.raw("}", to: &body)
    }
}

/// The secrets that sign webhooks (Standard Webhooks, "Signature scheme").
///
/// The file has one or two lines: `whsec_` and 24 to 64 bytes in base64. If there are two, both sign, so that a secret can be
/// changed while some backends know the old one and others the new one.
package struct WebhookSecrets: Sendable, Equatable, Redacted {
    /// Greatest size of the file, in bytes: two secrets and some comments.
    package static let fileByteLimit = 16_384
    /// The length of a secret in bytes, from Standard Webhooks.
    static let byteRange = 24...64

    private let keys: [[UInt8]]

    /// Reads the file's text; messages call the file `place` and never quote it.
    package init(parsing text: [UInt8], place: String) throws(ConfigurationError) {
        let prefix = Array("whsec_".utf8)
        let (key, other) = try FileLine.secrets(of: text, place: place, none: "the file holds no secret") {
            line throws(ConfigurationError) in
            let digits = Array(line.text.dropFirst(prefix.count))
            guard line.text.starts(with: prefix), let key = Base64.decode(digits.span, digits.indices),
                Self.byteRange.contains(key.count)
            else {
                throw line.error(
                    "a secret is whsec_ and \(Self.byteRange.lowerBound) to \(Self.byteRange.upperBound) "
                        + "bytes in base64, as 'echo whsec_$(openssl rand -base64 32)' makes it"
                )
            }
            return key
        }
        keys = [key] + (other.map { [$0] } ?? [])
    }

    /// The value of `webhook-signature`: `v1,` and an HMAC-SHA256 in base64, for each secret.
    package func signature(id: String, timestamp: Int64, body: [UInt8]) throws(OpenSSLError) -> String {
        let message = Array("\(id).\(timestamp).".utf8) + body
        var signatures: [String] = []
        for key in keys {
            let code = try HMACSHA256.authenticationCode(for: message.span, key: key.span)
            signatures.append("v1,\(Base64.encode(code.bytes.indices.map { code.bytes[$0] }))")
        }
        return signatures.joined(separator: " ")
    }
}
