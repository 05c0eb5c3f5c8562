internal import JOSE

/// What distinguishes one key set from the one before, by key ID.
struct KeySetChange: Equatable {
    let added: [String]
    let removed: [String]
    /// Key IDs whose key is another than before.
    let replaced: [String]

    init(from before: JSONWebKeySet, to after: JSONWebKeySet) {
        added = after.keys.map(\.keyID).filter { before.key(withID: $0) == nil }
        removed = before.keys.map(\.keyID).filter { after.key(withID: $0) == nil }
        replaced = after.keys.filter { key in
            before.key(withID: key.keyID).map { $0 != key } ?? false
        }.map(\.keyID)
    }

    func event(source: String) -> JWKSetEvent {
        .keySetChanged(source: source, added: added, removed: removed, replaced: replaced)
    }
}

extension JSONWebKeySet.IgnoredKey {
    func event(source: String) -> JWKSetEvent {
        .keyIgnored(source: source, index: index, keyID: keyID, reason: reason.description)
    }
}
