extension JSONWebKey {
    /// Reads one JWK at `node`: one predicate over all its members, refusing rather than falling back.
    init(_ document: borrowing JSONDocument, _ node: Int, in bytes: Span<UInt8>) throws(JSONWebKeyError) {
        guard document.kind(node) == .object else { throw .notAnObject }
        guard !document.isRepeating(node) else { throw .repeatedMember }
        // RFC 7517 section 4.1: `kty` is required.
        guard let type = document.member("kty", of: node, in: bytes), document.kind(type) == .string else {
            throw .malformedKeyType
        }
        guard document.string(type, equals: "RSA", in: bytes) else { throw .unsupportedKeyType }
        try Self.checkPurpose(document, node, in: bytes)
        // RFC 7518 sections 6.3.2 and 6.4.1: a published private or symmetric member gives the key away.
        for name in Self.privateMembers where document.member(name, of: node, in: bytes) != nil {
            throw .holdsPrivateMembers
        }
        guard let keyID = document.member("kid", of: node, in: bytes), document.kind(keyID) == .string else {
            throw .missingKeyID
        }
        var modulus = try Self.number("n", document, node, in: bytes)
        // RFC 7518 section 6.3.1.1 notes that some implementations put one zero octet before the modulus. The
        // value is the same, so refusing it would lock everyone out and protect nobody.
        if modulus.first == 0 { modulus.removeFirst() }
        let exponent = try Self.number("e", document, node, in: bytes)
        guard modulus.first != 0, exponent.first != 0 else { throw .malformedNumber }
        try self.init(keyID: document.string(keyID, in: bytes), modulus: modulus, publicExponent: exponent)
    }

    private static let privateMembers: [StaticString] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]

    /// Refuses a key that says it is for something else: RFC 7517 sections 4.2 to 4.4.
    private static func checkPurpose(
        _ document: borrowing JSONDocument,
        _ node: Int,
        in bytes: Span<UInt8>
    ) throws(JSONWebKeyError) {
        if let use = document.member("use", of: node, in: bytes) {
            guard document.string(use, equals: "sig", in: bytes) else { throw .notForSignatures }
        }
        if let operations = document.member("key_ops", of: node, in: bytes) {
            try checkOperations(document, operations, in: bytes)
        }
        if let algorithm = document.member("alg", of: node, in: bytes) {
            guard document.string(algorithm, equals: "RS256", in: bytes) else { throw .unsupportedAlgorithm }
        }
    }

    /// RFC 7517 section 4.3: an array of distinct strings. `sign` beside `verify` is no use for a public key but
    /// does no harm; any other operation says that the key serves another purpose.
    private static func checkOperations(
        _ document: borrowing JSONDocument,
        _ operations: Int,
        in bytes: Span<UInt8>
    ) throws(JSONWebKeyError) {
        guard document.kind(operations) == .array else { throw .notForVerifying }
        var verifyCount = 0
        var signCount = 0
        var element = document.firstChild(operations)
        while element < document.next(operations) {
            if document.string(element, equals: "verify", in: bytes) {
                verifyCount += 1
            } else if document.string(element, equals: "sign", in: bytes) {
                signCount += 1
            } else {
                throw .notForVerifying
            }
            element = document.next(element)
        }
        guard verifyCount == 1, signCount <= 1 else { throw .notForVerifying }
    }

    /// A Base64urlUInt member (RFC 7518 section 2): a string, strict base64url, not empty.
    private static func number(
        _ name: StaticString,
        _ document: borrowing JSONDocument,
        _ node: Int,
        in bytes: Span<UInt8>
    ) throws(JSONWebKeyError) -> [UInt8] {
        guard let member = document.member(name, of: node, in: bytes), document.kind(member) == .string else {
            throw .malformedNumber
        }
        // Decoded first, so that a digit spelt as a JSON escape is the same digit.
        var text: [UInt8] = []
        document.appendString(member, in: bytes, to: &text)
        var value: [UInt8] = []
        guard Base64URL.decode(text.span, 0..<text.count, into: &value), !value.isEmpty else { throw .malformedNumber }
        return value
    }
}
