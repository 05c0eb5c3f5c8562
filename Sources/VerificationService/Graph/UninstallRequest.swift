internal import JOSE

/// The body of `POST /uninstall`: `id_token`, and perhaps `app_id`, which narrows the configured apps to one.
struct UninstallRequest {
    let token: [UInt8]
    /// Empty for any configured app.
    let appID: [UInt8]

    init(_ body: Span<UInt8>) throws(Problem) {
        var limits = JSONLimits()
        limits.byteCount = VerifyEndpoint.bodyLimit
        limits.depth = 4
        limits.memberCount = 16
        var document = JSONDocument(limits: limits)
        try document.parseObject(body)
        var token: [UInt8] = []
        var appID: [UInt8] = []
        var name = document.firstChild(document.root)
        while name < document.next(document.root) {
            guard document.isString(name + 1) else {
                throw Problem(.invalidRequest, "Every member of the body must be a string.")
            }
            if document.string(name, equals: "id_token", in: body) {
                document.appendString(name + 1, in: body, to: &token)
            } else if document.string(name, equals: "app_id", in: body) {
                document.appendString(name + 1, in: body, to: &appID)
                guard !appID.isEmpty else { throw Problem(.unknownApp, "The member app_id is empty.") }
            } else {
                throw Problem(.invalidRequest, "The body has an unknown member; known are id_token and app_id.")
            }
            name = document.next(name + 1)
        }
        guard !token.isEmpty else { throw Problem(.invalidRequest, "The member id_token is missing or empty.") }
        self.token = token
        self.appID = appID
    }
}
