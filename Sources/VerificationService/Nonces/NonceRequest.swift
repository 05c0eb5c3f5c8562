internal import JOSE
internal import LimitedLogin

/// The body of `POST /nonces`, read strictly.
struct NonceRequest {
    /// Greatest body, in bytes.
    static let bodyLimit = 1_024

    /// The app the nonce is for; nil where the only one is meant.
    private(set) var appID: String?
    /// The life asked for, in seconds; nil for the configured one.
    private(set) var lifetimeSeconds: Int?

    init(_ body: Span<UInt8>) throws(Problem) {
        guard !body.isEmpty else { return }
        var limits = JSONLimits()
        limits.byteCount = Self.bodyLimit
        limits.depth = 2
        limits.nodeCount = 32
        limits.memberCount = 8
        var document = JSONDocument(limits: limits)
        try document.parseObject(body)
        var name = document.firstChild(document.root)
        while name < document.next(document.root) {
            let value = name + 1
            if document.string(name, equals: "app_id", in: body) {
                guard document.isString(value) else {
                    throw Problem(.invalidRequest, "The member app_id must be a string.")
                }
                appID = document.string(value, in: body)
            } else if document.string(name, equals: "expires_in", in: body) {
                guard document.kind(value) == .number, let number = document.integer(value, in: body) else {
                    throw Problem(.invalidRequest, "The member expires_in must be a whole number of seconds.")
                }
                lifetimeSeconds = Int(clamping: number)
            } else {
                throw Problem(.invalidRequest, "The body has an unknown member; known are app_id and expires_in.")
            }
            name = document.next(value)
        }
    }
}
