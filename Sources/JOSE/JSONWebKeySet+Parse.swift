extension JSONWebKeySet {
    /// Reads the JSON text of a JWK Set (RFC 7517 section 5).
    ///
    /// Keys of other kinds and malformed keys are ignored one by one and told in `ignoredKeys`; other members
    /// of the set are ignored. A set without any usable key is no error here: what it means depends on the
    /// keys the caller already has.
    /// - Parameter text: at most 64 KiB of UTF-8.
    /// - Throws: `JSONWebKeySetError` when the text is no JWK Set at all, or holds more than 64 keys.
    public init(parsing text: Span<UInt8>) throws(JSONWebKeySetError) {
        guard text.count <= Limits.byteCount else { throw .tooLong }
        var document = JSONDocument(repeatedMembers: .marked)
        do throws(JSONError) {
            try document.parse(text)
        } catch {
            throw .malformed("\(error.reason.rawValue), at byte \(error.offset)")
        }
        guard document.kind(document.root) == .object, !document.isRepeating(document.root),
            let list = document.member("keys", of: document.root, in: text), document.kind(list) == .array
        else { throw .notAKeySet }
        guard document.childCount(list) <= Limits.keyCount else { throw .tooManyKeys }
        var candidates: [(index: Int, key: JSONWebKey)] = []
        var ignored: [IgnoredKey] = []
        var node = document.firstChild(list)
        var index = 0
        while node < document.next(list) {
            do throws(JSONWebKeyError) {
                candidates.append((index, try JSONWebKey(document, node, in: text)))
            } catch {
                ignored.append(IgnoredKey(index: index, keyID: Self.keyID(document, node, in: text), reason: error))
            }
            node = document.next(node)
            index += 1
        }
        self.init(candidates, ignored: ignored)
    }

    /// Reads the JSON text of a JWK Set.
    public init(parsing text: String) throws(JSONWebKeySetError) {
        try self.init(parsing: Array(text.utf8).span)
    }

    private static func keyID(_ document: borrowing JSONDocument, _ node: Int, in bytes: Span<UInt8>) -> String? {
        guard let keyID = document.member("kid", of: node, in: bytes), document.kind(keyID) == .string,
            document.range(keyID).count <= JSONWebKey.Limits.keyIDByteCount
        else { return nil }
        return document.string(keyID, in: bytes)
    }
}
