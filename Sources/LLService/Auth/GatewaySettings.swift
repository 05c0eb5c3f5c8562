internal import LLBytes
internal import LLHTTP
internal import LLJOSE
package import LimitedLogin

/// The settings of `/auth`. It is a class, so that a request holds one reference to all of them.
package final class GatewaySettings: Sendable {
    /// The demands on the DPoP scheme, and on tokens bound to a key.
    package let dpop: DPoPDemand
    /// The scheme and host of every client's request; nil if the gateway sends them with each request.
    package let origin: GatewayOrigin?
    package let fields: [AuthField]
    let texts: ClaimSet

    package init(dpop: DPoPDemand = .ifSent, origin: GatewayOrigin? = nil, fields: [AuthField] = AuthField.standard) {
        self.dpop = dpop
        self.origin = origin
        self.fields = fields
        texts = ClaimSet(fields.map { ClaimSet($0.claim) })
    }
}

/// The rule for proofs that a token's holder has its key (RFC 9449).
package enum DPoPDemand: String, Sendable, CaseIterable {
    /// No token may come with a proof: the scheme DPoP is unknown.
    case ignored
    /// A token needs a proof under the scheme DPoP.
    case ifSent = "if_sent"
    /// The same as `ifSent`, and a token bound to a key is refused under the scheme Bearer.
    case requiredIfBound = "required_if_bound"
}

package struct GatewayOrigin: Sendable, Equatable {
    let scheme: [UInt8]
    let authority: [UInt8]

    /// The origin; nil for a text that is no `http` or `https` URL, or has a path, a query or a fragment.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        let (slash, colon) = (UInt8(ascii: "/"), UInt8(ascii: ":"))
        // One slash may follow the authority: `https://host/` means the same as `https://host`.
        guard let uri = TargetURI(bytes.span), !bytes.contains(where: { "?#".utf8.contains($0) }),
            uri.normalized.filter({ $0 == slash }).count == 3, uri.normalized.last == slash,
            let end = uri.normalized.firstIndex(of: colon)
        else { return nil }
        scheme = Array(uri.normalized[..<end])
        authority = Array(uri.normalized[(end + 3)...].dropLast())
    }
}

/// A header field of the answer that has a claim as its value: `X-Auth-Subject=sub`.
package struct AuthField: Sendable, Equatable, CustomStringConvertible {
    /// The greatest length of a name, in bytes. 64 is twice the length of the longest names in use.
    static let nameByteLimit = 64

    static let claims: [(name: String, claim: ClaimName)] =
        [ClaimName.subject, .audience, .issuer, .expiration, .issuedAt, .tokenID].map { ($0.spelling, $0) }
        + PersonalClaim.told.map { ("\($0.name)", $0.claim) } + [("cnf.jkt", .confirmation)]

    package let claim: ClaimName
    let fieldName: FieldName
    package var name: String { String(decoding: fieldName.bytes, as: UTF8.self) }

    init(_ text: String) throws(SettingFault) {
        guard let equals = text.firstIndex(of: "=") else {
            throw SettingFault(text, "is not FIELD=CLAIM, such as X-Auth-Subject=sub")
        }
        let name = String(text[..<equals])
        let claimName = text[text.index(after: equals)...]
        guard let claim = Self.claims.first(where: { $0.name == claimName })?.claim else {
            let known = Self.claims.map(\.name).joined(separator: ", ")
            throw SettingFault(text, "names none of the claims \(known)")
        }
        // A name has letters, digits and hyphens (RFC 9110 section 5.1). WSGI, CGI and Rack read `_` as `-`, and PHP
        // also reads `.` so: with these characters a client's field could replace this one.
        guard (1...Self.nameByteLimit).contains(name.utf8.count), name.utf8.first.map(ASCII.isAlphanumeric) == true,
            name.utf8.allSatisfy({ ASCII.isAlphanumeric($0) || $0 == UInt8(ascii: "-") }),
            let fieldName = FieldName(name)
        else {
            throw SettingFault(
                text,
                "has no field name: 1 to \(Self.nameByteLimit) letters, digits and hyphens, a letter or digit first"
            )
        }
        let lowered = name.lowercased()
        guard !Self.reservedNames.contains(lowered), !Self.reservedPrefixes.contains(where: lowered.hasPrefix) else {
            let fault = "has the name of a field that means something else to HTTP, a gateway or this service"
            throw SettingFault(text, fault)
        }
        self.claim = claim
        self.fieldName = fieldName
    }

    package var description: String { "\(name)=\(Self.claims.first { $0.claim == claim }?.name ?? "")" }

    package static let standard = [
        "X-Auth-Subject=sub", "X-Auth-Audience=aud", "X-Auth-Expires=exp", "X-Auth-Email=email",
    ].compactMap { try? AuthField($0) }

    /// Names that no claim may have, because a gateway adds the fields to its client's request: those of HTTP itself (RFC
    /// 9110, 9111, 9112, 6265, 6454, 6797 and 7239), those with which gateways describe the client, and the service's own.
    private static let reservedNames: Set<String> = [
        "accept", "age", "allow", "alt-svc", "authentication-info", "authorization", "cache-control", "close",
        "connection", "cookie", "cookie2", "date", "dpop", "dpop-nonce", "early-data", "etag", "expect", "expires",
        "forwarded", "from", "host", "http2-settings", "keep-alive", "last-modified", "link", "location",
        "max-forwards", "mime-version", "origin", "pragma", "prefer", "priority", "range", "referer", "retry-after",
        "server", "set-cookie", "set-cookie2", "strict-transport-security", "te", "traceparent", "tracestate",
        "trailer", "transfer-encoding", "upgrade", "user-agent", "vary", "via", "warning", "www-authenticate",
        "x-accel-redirect", "x-api-key", "x-forwarded-for", "x-forwarded-host", "x-forwarded-method",
        "x-forwarded-port", "x-forwarded-proto", "x-forwarded-uri", "x-http-method-override", "x-real-ip",
        "x-request-id",
    ]
    private static let reservedPrefixes = [
        "accept-", "access-control-", "content-", "if-", "proxy-", "sec-", "x-accel-",
    ]
}

enum AuthFieldValue {
    /// The greatest length of a claim, in bytes. With every byte encoded it has 3 KiB; gateways refuse an
    /// answer above 4 to 8 KiB.
    static let byteLimit = 1_024

    /// Appends a string's value. JSON escapes are decoded; `%` and every byte outside visible ASCII are
    /// percent-encoded, so that different claims have different values (RFC 9110 section 5.5 has no other way for
    /// UTF-8).
    /// - Returns: False if the claim is empty or longer than ``byteLimit``, and so has no value.
    static func append(_ range: Range<Int>, in payload: Span<UInt8>, to output: inout OutputSpan<UInt8>) -> Bool {
        let text = payload.extracting(range)
        if isPlain(text) {
            output.append(text)
            return true
        }
        var value: [UInt8] = []
        JSONText.append(payload, range, to: &value)
        guard (1...byteLimit).contains(value.count) else { return false }
        for byte in value {
            if ASCII.isVisible(byte), byte != UInt8(ascii: "%") {
                output.append(byte)
            } else {
                PercentEncoding.append(byte, to: &output)
            }
        }
        return true
    }

    /// The greatest length of a string's value. No escape is shorter than its character.
    static func room(for range: Range<Int>) -> Int { 3 * min(range.count, byteLimit) }

    /// True if the text is the value: no byte is escaped in JSON or to be encoded, and the length is within the limits.
    static func isPlain(_ text: Span<UInt8>) -> Bool {
        guard !text.isEmpty, text.count <= byteLimit else { return false }
        return text.indices.allSatisfy { index in
            ASCII.isVisible(text[index]) && text[index] != UInt8(ascii: "%") && text[index] != UInt8(ascii: "\\")
        }
    }
}
