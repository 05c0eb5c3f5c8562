internal import JOSE
package import LimitedLogin

/// The body of `POST /verify`, read strictly into reusable memory: one reader for each worker.
package struct VerifyRequestReader: ~Copyable {
    /// Greatest number of permissions asked for: there are twelve, and a list may repeat itself.
    package static let permissionCountLimit = 64

    private var document: JSONDocument
    /// The token, escapes decoded.
    package private(set) var token: [UInt8] = []
    /// What the binding compares with; empty when there is none.
    package private(set) var bindingValue: [UInt8] = []
    /// The app the token must be for; empty for any configured one.
    package private(set) var appID: [UInt8] = []
    /// How the token is tied to a login.
    package private(set) var binding = BindingKind.unbound
    /// The permissions the caller needs; nil when it did not ask.
    package private(set) var permissions: PermissionSet?
    private var permissionName: [UInt8] = []

    package init() {
        var limits = JSONLimits()
        limits.byteCount = 16_384
        limits.depth = 4
        limits.nodeCount = 1024
        // Six are known; names are compared with each other before it shows that others are not.
        limits.memberCount = 16
        document = JSONDocument(limits: limits)
    }

    /// Reads one body; what was read before is forgotten.
    package mutating func read(_ body: Span<UInt8>) throws(Problem) {
        token.removeAll(keepingCapacity: true)
        bindingValue.removeAll(keepingCapacity: true)
        appID.removeAll(keepingCapacity: true)
        binding = .unbound
        permissions = nil
        try document.parseObject(body)
        var name = document.firstChild(document.root)
        let end = document.next(document.root)
        while name < end {
            try readMember(name, in: body)
            name = document.next(name + 1)
        }
        guard !token.isEmpty else {
            throw Problem(.invalidRequest, "The member id_token is missing or empty.")
        }
    }

    private mutating func readMember(_ name: Int, in body: Span<UInt8>) throws(Problem) {
        let value = name + 1
        if document.string(name, equals: "id_token", in: body) {
            try requireString(value, "id_token")
            document.appendString(value, in: body, to: &token)
        } else if document.string(name, equals: "nonce", in: body) {
            try readBinding(.nonce, "nonce", value, in: body)
        } else if document.string(name, equals: "raw_nonce", in: body) {
            try readBinding(.rawNonce, "raw_nonce", value, in: body)
        } else if document.string(name, equals: "issued_nonce", in: body) {
            try readIssuedNonce(value)
        } else if document.string(name, equals: "subject", in: body) {
            try readBinding(.subject, "subject", value, in: body)
        } else if document.string(name, equals: "app_id", in: body) {
            try requireString(value, "app_id")
            document.appendString(value, in: body, to: &appID)
            guard !appID.isEmpty else { throw Problem(.unknownApp, "The member app_id is empty.") }
        } else if document.string(name, equals: "permissions", in: body) {
            try readPermissions(value, in: body)
        } else {
            throw Problem(
                .invalidRequest,
                "The body has an unknown member; known are id_token, nonce, raw_nonce, issued_nonce, subject, app_id and "
                    + "permissions."
            )
        }
    }

    private func requireString(_ node: Int, _ member: StaticString) throws(Problem) {
        guard document.isString(node) else {
            throw Problem(.invalidRequest, "The member \(member) must be a string.")
        }
    }

    private mutating func readBinding(
        _ kind: BindingKind,
        _ member: StaticString,
        _ value: Int,
        in body: Span<UInt8>
    ) throws(Problem) {
        try requireOnlyBinding()
        guard document.isString(value) else {
            let code: ProblemCode = kind == .subject ? .invalidRequest : .invalidNonce
            throw Problem(code, "The member \(member) must be a string.")
        }
        binding = kind
        document.appendString(value, in: body, to: &bindingValue)
        guard !bindingValue.isEmpty else {
            let code: ProblemCode = kind == .subject ? .invalidRequest : .invalidNonce
            throw Problem(code, "The member \(member) is empty.")
        }
    }

    /// A flag that is set or not there: what is false could be meant either way.
    private mutating func readIssuedNonce(_ value: Int) throws(Problem) {
        try requireOnlyBinding()
        guard document.kind(value) == .true else {
            throw Problem(.invalidRequest, "The member issued_nonce can only be true; leave it out otherwise.")
        }
        binding = .issuedNonce
    }

    private func requireOnlyBinding() throws(Problem) {
        guard binding == .unbound else {
            throw Problem(.invalidRequest, "Only one of nonce, raw_nonce, issued_nonce and subject may be given.")
        }
    }

    private mutating func readPermissions(_ list: Int, in body: Span<UInt8>) throws(Problem) {
        guard document.kind(list) == .array else {
            throw Problem(.invalidRequest, "The member permissions must be an array of strings.")
        }
        var asked = PermissionSet()
        var count = 0
        var element = document.firstChild(list)
        while element < document.next(list) {
            guard document.isString(element), count < Self.permissionCountLimit else {
                throw Problem(.invalidRequest, "The member permissions must be an array of strings, 64 at most.")
            }
            permissionName.removeAll(keepingCapacity: true)
            document.appendString(element, in: body, to: &permissionName)
            guard let permission = Permission(name: permissionName.span) else {
                throw Problem(
                    .invalidPermission,
                    "A permission asked for is none of Limited Login's twelve, such as email or user_birthday."
                )
            }
            asked.insert(PermissionSet(permission))
            count += 1
            element = document.next(element)
        }
        permissions = asked
    }
}
