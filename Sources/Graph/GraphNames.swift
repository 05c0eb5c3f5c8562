/// A person's app-scoped id: 1 to 32 decimal digits, so that nothing else of a caller's words gets into a URL.
package struct GraphUserID: Sendable, Equatable {
    package let text: String

    package init?(_ bytes: Span<UInt8>) {
        guard (1...32).contains(bytes.count) else { return nil }
        var digits: [UInt8] = []
        for index in bytes.indices {
            guard bytes[index] &- 0x30 < 10 else { return nil }
            digits.append(bytes[index])
        }
        text = String(decoding: digits, as: UTF8.self)
    }
}

/// The name of a permission: 1 to 64 of `[a-z_]`, as Facebook's SDK demands.
package struct GraphPermission: Sendable, Hashable, Comparable {
    package let name: String

    package init?(_ bytes: Span<UInt8>) {
        guard (1...64).contains(bytes.count) else { return nil }
        var letters: [UInt8] = []
        for index in bytes.indices {
            guard bytes[index] &- 0x61 < 26 || bytes[index] == UInt8(ascii: "_") else { return nil }
            letters.append(bytes[index])
        }
        name = String(decoding: letters, as: UTF8.self)
    }

    package init?(_ text: String) { self.init(Array(text.utf8).span) }

    package static func < (left: GraphPermission, right: GraphPermission) -> Bool { left.name < right.name }
}

extension GraphUserID {
    package init?(_ text: String) { self.init(Array(text.utf8).span) }
}
