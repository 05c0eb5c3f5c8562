internal import LimitedLogin

/// How `/auth` answers. A class, so that a request takes one reference to all of it.
package final class GatewaySettings: Sendable, Equatable {
    /// What is demanded of the DPoP scheme, and of tokens bound to a key.
    package let dpop: DPoPDemand
    /// Scheme and host of every client's request; nil where the gateway tells them with each.
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

    /// The origin; nil for what is no `http` or `https` URL, or has a path, a query or a fragment.
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
