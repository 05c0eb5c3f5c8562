internal import LLBytes
internal import LLHTTP1
internal import LLJOSE
package import LimitedLogin

/// How `/auth` answers. A class, so that a request takes one reference to all of it.
package final class GatewaySettings: Sendable, Equatable {
    /// The demands on the DPoP scheme, and on tokens bound to a key.
    package let dpop: DPoPDemand
    /// Scheme and host of every client's request; nil if the gateway tells them with each request.
    package let origin: GatewayOrigin?
    /// The fields of a good answer, in their order.
    package let fields: [AuthField]
    let texts: TokenReading.Texts

    package init(
        dpop: DPoPDemand = .ifSent,
        origin: GatewayOrigin? = nil,
        fields: [AuthField] = AuthField.standard
    ) {
        self.dpop = dpop
        self.origin = origin
        self.fields = fields
        var texts = TokenReading.Texts()
        for case .text(let text) in fields.map(\.claim) { texts.insert(text) }
        self.texts = texts
    }

    package static func == (left: GatewaySettings, right: GatewaySettings) -> Bool {
        left.dpop == right.dpop && left.origin == right.origin && left.fields == right.fields
    }
}

/// Which tokens must come with a proof that their holder has their key (RFC 9449).
package enum DPoPDemand: String, Sendable, CaseIterable {
    /// None may: the scheme DPoP is not known.
    case ignored
    /// Those under the scheme DPoP.
    case ifSent = "if_sent"
    /// The same, and a token bound to a key is refused under the scheme Bearer.
    case requiredIfBound = "required_if_bound"
}

/// Scheme and authority of a URL, such as `https://api.example.com`.
package struct GatewayOrigin: Sendable, Equatable {
    let scheme: [UInt8]
    let authority: [UInt8]

    /// The origin; nil for a text that is no `http` or `https` URL, or has a path, a query or a fragment.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        let (slash, colon) = (UInt8(ascii: "/"), UInt8(ascii: ":"))
        // One slash behind the two of the scheme: an empty path has the same spelling.
        guard let uri = TargetURI(bytes.span), !bytes.contains(where: { "?#".utf8.contains($0) }),
            uri.normalized.filter({ $0 == slash }).count == 3, uri.normalized.last == slash,
            let end = uri.normalized.firstIndex(of: colon)
        else { return nil }
        scheme = Array(uri.normalized[..<end])
        authority = Array(uri.normalized[(end + 3)...].dropLast())
    }
}

/// One field in which `/auth` tells a claim: `X-Auth-Subject=sub`.
package struct AuthField: Sendable, Equatable, CustomStringConvertible {
    /// Greatest length of a name in bytes. 64: twice what the longest in use have.
    static let nameByteLimit = 64

    package enum Claim: Sendable, Equatable {
        case text(TokenReading.Text)
        case expiration
        case issuedAt
    }

    /// The claims that a field may tell, by their names.
    static let claims: [(name: String, claim: Claim)] = [
        ("sub", .text(.subject)), ("aud", .text(.audience)), ("iss", .text(.issuer)), ("exp", .expiration),
        ("iat", .issuedAt), ("jti", .text(.tokenID)), ("email", .text(.email)), ("name", .text(.name)),
        ("given_name", .text(.firstName)), ("middle_name", .text(.middleName)), ("family_name", .text(.lastName)),
        ("picture", .text(.imageURL)), ("cnf.jkt", .text(.keyThumbprint)),
    ]

    package struct Fault: Error, Sendable, Equatable {
        package let reason: String
    }

    package let claim: Claim
    let fieldName: FieldName
    package var name: String { String(decoding: fieldName.bytes, as: UTF8.self) }

    /// Reads `FIELD=CLAIM`.
    package init(_ text: String) throws(Fault) {
        guard let equals = text.firstIndex(of: "=") else {
            throw Fault(reason: "is not FIELD=CLAIM, such as X-Auth-Subject=sub")
        }
        let name = String(text[..<equals])
        let claimName = text[text.index(after: equals)...]
        guard let claim = Self.claims.first(where: { $0.name == claimName })?.claim else {
            let known = Self.claims.map(\.name).joined(separator: ", ")
            throw Fault(reason: "names none of the claims \(known)")
        }
        // Letters, digits and hyphens (RFC 9110 section 5.1): WSGI, CGI and Rack read `_` as `-`, PHP also `.`, so that a
        // client's field could stand for this one.
        guard (1...Self.nameByteLimit).contains(name.utf8.count), name.utf8.first.map(ASCII.isAlphanumeric) == true,
            name.utf8.allSatisfy({ ASCII.isAlphanumeric($0) || $0 == UInt8(ascii: "-") }),
            let fieldName = FieldName(name)
        else {
            throw Fault(
                reason:
                    "has no field name: 1 to \(Self.nameByteLimit) letters, digits and hyphens, a letter or digit first"
            )
        }
        guard !ReservedFieldNames.contain(name) else {
            throw Fault(reason: "has the name of a field that means something else to HTTP, a gateway or this service")
        }
        self.claim = claim
        self.fieldName = fieldName
    }

    package var description: String {
        "\(name)=\(Self.claims.first { $0.claim == claim }?.name ?? "")"
    }

    /// The default fields.
    package static let standard = [
        "X-Auth-Subject=sub", "X-Auth-Audience=aud", "X-Auth-Expires=exp", "X-Auth-Email=email",
    ].compactMap { try? AuthField($0) }
}

/// Field names that no claim may take: a gateway sends the fields on to the application with its client's request.
enum ReservedFieldNames {
    static func contain(_ name: String) -> Bool {
        let name = name.lowercased()
        return names.contains(name) || prefixes.contains { name.hasPrefix($0) }
    }

    /// HTTP's own (RFC 9110 section 18.4, RFC 9111 section 8.1, RFC 9112 section 9.6 and 6.1, RFC 6265, RFC 6454, RFC 6797,
    /// RFC 7239), the hop-by-hop ones among them, what gateways tell of the client, and the service's own.
    private static let names: Set<String> = [
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
    private static let prefixes = ["accept-", "access-control-", "content-", "if-", "proxy-", "sec-", "x-accel-"]
}

/// A claim as the value of a header field.
enum AuthFieldValue {
    /// Greatest length of a claim, in bytes of UTF-8: with each of them encoded it fills 3 KiB, and gateways refuse an
    /// answer of more than 4 to 8 KiB.
    static let byteLimit = 1_024

    /// Appends a string's value, escapes decoded and every byte outside visible ASCII, and `%`, percent-encoded, so
    /// that every claim has one value and every value one claim (RFC 9110 section 5.5 has no other way for UTF-8).
    /// - Parameters:
    ///   - range: the bytes between the string's quotes.
    ///   - output: has room for ``room(for:)``.
    /// - Returns: false if there is no value: the claim is empty or longer than ``byteLimit``.
    static func append(_ range: Range<Int>, in payload: Span<UInt8>, to output: inout OutputSpan<UInt8>) -> Bool {
        let text = payload.extracting(range)
        if isPlain(text) {
            output.append(text)
            return true
        }
        var reader = JSONStringReader(range)
        var count = 0
        while true {
            let run = payload.extracting(reader.nextRun(in: payload))
            count += run.count
            guard count <= byteLimit else { return false }
            if isPlain(run) {
                output.append(run)
            } else {
                for index in run.indices { append(run[index], to: &output) }
            }
            guard let byte = reader.next(in: payload) else { return count > 0 }
            count += 1
            guard count <= byteLimit else { return false }
            append(byte, to: &output)
        }
    }

    private static func append(_ byte: UInt8, to output: inout OutputSpan<UInt8>) {
        if ASCII.isVisible(byte), byte != UInt8(ascii: "%") {
            output.append(byte)
        } else {
            PercentEncoding.append(byte, to: &output)
        }
    }

    /// Greatest length of the value of a string: no escape is shorter than its character.
    static func room(for range: Range<Int>) -> Int { 3 * min(range.count, byteLimit) }

    /// True if the text is the value as it stands: each byte stands for itself in JSON and in a field, and they are neither
    /// none nor too many.
    static func isPlain(_ text: Span<UInt8>) -> Bool {
        guard !text.isEmpty, text.count <= byteLimit else { return false }
        var offset = 0
        while text.count &- offset >= 16 {
            let bytes = text.vector16(at: offset)
            let isVisible = bytes &- 0x21 .<= SIMD16<UInt8>(repeating: 0x7E - 0x21)
            let isPercent = bytes .== SIMD16<UInt8>(repeating: UInt8(ascii: "%"))
            let isSolidus = bytes .== SIMD16<UInt8>(repeating: UInt8(ascii: "\\"))
            let marks = ~isVisible.words | isPercent.words | isSolidus.words
            if marks[0] | marks[1] != 0 { return false }
            offset &+= 16
        }
        while offset < text.count {
            let byte = text[offset]
            guard ASCII.isVisible(byte), byte != UInt8(ascii: "%"), byte != UInt8(ascii: "\\") else { return false }
            offset += 1
        }
        return true
    }
}
