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

/// The name of a permission: 1 to 64 of `[a-z_.]`, such as `user_actions.fitness`. A full stop stands between two words,
/// so that no name is a `.` or `..` that a path would lead elsewhere by.
package struct GraphPermission: Sendable, Hashable, Comparable {
    package let name: String

    package init?(_ bytes: Span<UInt8>) {
        guard (1...64).contains(bytes.count) else { return nil }
        var letters: [UInt8] = []
        var isWordOpen = false
        for index in bytes.indices {
            let byte = bytes[index]
            let isLetter = byte &- 0x61 < 26 || byte == UInt8(ascii: "_")
            guard isLetter || (byte == UInt8(ascii: ".") && isWordOpen) else { return nil }
            isWordOpen = isLetter
            letters.append(byte)
        }
        guard isWordOpen else { return nil }
        name = String(decoding: letters, as: UTF8.self)
    }

    package init?(_ text: String) { self.init(Array(text.utf8).span) }

    /// What a name is, for messages.
    package static let shape = "1 to 64 of [a-z_], words with a full stop between them"

    package static func < (left: GraphPermission, right: GraphPermission) -> Bool { left.name < right.name }
}

extension GraphUserID {
    package init?(_ text: String) { self.init(Array(text.utf8).span) }
}

/// A person's access token: the text of a credential, which is never described.
package struct GraphAccessToken: Sendable {
    let text: String

    /// - Parameter bytes: visible ASCII, as the caller has seen; anything else is refused where the field is written.
    package init(_ bytes: [UInt8]) { text = String(decoding: bytes, as: UTF8.self) }
}

extension GraphAccessToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "GraphAccessToken(redacted)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
