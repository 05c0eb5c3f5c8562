internal import LLHTTP
internal import LLJOSE
internal import LimitedLogin

/// The authentication schemes for a token (RFC 6750 section 2.1, RFC 9449 section 7.1).
enum AuthScheme: String, Sendable {
    case bearer = "Bearer"
    case dpop = "DPoP"
}

/// The only `Authorization` field of a gateway's request: its scheme and its token.
struct AuthCredentials {
    let scheme: AuthScheme
    let token: Range<Int>

    init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ demand: DPoPDemand) throws(Rejection) {
        guard head.count(of: "authorization", in: bytes) <= 1 else {
            throw Rejection(.missingToken, "The request has more than one Authorization field, so none of them counts.")
        }
        let value = head.value(of: "authorization", in: bytes)
        if let token = value.flatMap({ CallerCredentials.rest(of: $0, after: "bearer ", bytes) }) {
            (scheme, self.token) = (.bearer, token)
        } else if demand != .ignored,
            let token = value.flatMap({ CallerCredentials.rest(of: $0, after: "dpop ", bytes) })
        {
            (scheme, self.token) = (.dpop, token)
        } else {
            throw Rejection(
                .missingToken,
                demand == .ignored
                    ? "The id token is wanted in the field Authorization: Bearer."
                    : "The id token is wanted in the field Authorization: Bearer, or DPoP with a proof."
            )
        }
    }

    /// Judges the request's proof if the scheme is DPoP. An unreadable `cnf` is always refused. With Bearer the `DPoP`
    /// field is not read, but its presence makes the service refuse a bound token unless proofs are ignored: that client
    /// can prove its key (RFC 9449 section 7.2).
    /// - Returns: The proof, which is good but may have been used before; nil if none is needed.
    func judgeProof(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ claims: VerifiedClaims,
        payload: [UInt8],
        gateway: GatewaySettings,
        policy: @autoclosure () -> VerificationPolicy
    ) throws(Rejection) -> DPoPProof? {
        var bound: Range<Int>?
        switch claims.keyBinding {
        case .unreadable: throw .proofOfUnreadableBinding
        case .key(let thumbprint): bound = thumbprint
        case .none: break
        }
        guard scheme == .dpop else {
            guard bound != nil, gateway.dpop != .ignored else { return nil }
            if head.count(of: "dpop", in: bytes) > 0 { throw .boundBearer }
            guard gateway.dpop == .requiredIfBound else { return nil }
            throw .proofMissing
        }
        // RFC 9449 section 4.3 (1) allows one `DPoP` field.
        let count = head.count(of: "dpop", in: bytes)
        guard count <= 1 else { throw .proofRepeated }
        guard let bound else { throw .proofOfUnboundToken }
        guard let proof = head.value(of: "dpop", in: bytes) else { throw .proofMissing }
        let request = try ForwardedRequest(head, bytes, origin: gateway.origin)
        let now = NumericDate.now
        return try DPoPProof(
            verifying: bytes.extracting(proof),
            method: bytes.extracting(request.method),
            target: request.target,
            token: bytes.extracting(token),
            keyThumbprint: JSONText.value(payload.span, bound).utf8.span,
            clockSkew: policy().clockSkew,
            now: now
        )
    }
}

/// The client's request, as described by its gateway in `X-Forwarded-Method`, `-Proto`, `-Host` and `-Uri`.
struct ForwardedRequest {
    let method: Range<Int>
    let target: TargetURI

    /// - Parameter origin: The scheme and host of every request. If given, the fields for them are not read.
    init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, origin: GatewayOrigin?) throws(Rejection) {
        method = try Self.only("x-forwarded-method", head, bytes)
        let uri = bytes.extracting(try Self.only("x-forwarded-uri", head, bytes, mayHoldComma: true))
        let target: TargetURI?
        if let origin {
            target = TargetURI(scheme: origin.scheme.span, authority: origin.authority.span, target: uri)
        } else {
            target = TargetURI(
                scheme: bytes.extracting(try Self.only("x-forwarded-proto", head, bytes)),
                authority: bytes.extracting(try Self.only("x-forwarded-host", head, bytes)),
                target: uri
            )
        }
        guard let target else {
            throw Self.fault("X-Forwarded-Proto, -Host and -Uri make no http URL: each has one value, as https")
        }
        self.target = target
    }

    /// The value of a field that must come exactly once. If there are two, one may be from the client.
    private static func only(
        _ name: StaticString,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        mayHoldComma: Bool = false
    ) throws(Rejection) -> Range<Int> {
        let count = head.count(of: name, in: bytes)
        guard count < 2 else { throw fault("\(name) stands there \(count) times") }
        guard let value = head.value(of: name, in: bytes), !value.isEmpty else { throw fault("\(name) is missing") }
        let holdsList = value.contains { bytes[$0] == UInt8(ascii: ",") }
        guard !holdsList || mayHoldComma else { throw fault("\(name) has several values") }
        return value
    }

    /// A fault of the gateway, not of the proof: a new proof would not help, so the status is no 401.
    private static func fault(_ reason: String) -> Rejection {
        Rejection(
            .invalidRequest,
            "The gateway tells its client's request wrongly, so no DPoP proof can be judged: \(reason).",
            hint: "Have the gateway replace X-Forwarded-Method, -Proto, -Host and -Uri by one value each, as in "
                + "config/gateways; gateway_origin stands in for -Proto and -Host."
        )
    }
}
