/// Why a text is not the JSON (RFC 8259, I-JSON RFC 7493) this project reads.
package struct JSONError: Error, Equatable, Sendable {
    /// The rule that was broken.
    package enum Reason: String, Equatable, Sendable {
        case empty = "the text is empty"
        case tooLong = "the text is too long"
        case byteOrderMark = "the text starts with a byte-order mark"
        case unexpectedByte = "a byte stands where no JSON grammar allows it"
        case truncated = "the text ends too early"
        case trailingBytes = "bytes follow the value"
        case tooDeep = "arrays and objects are nested too deeply"
        case tooManyMembers = "an object has too many members"
        case tooManyNodes = "the text holds too many values"
        case repeatedMember = "an object names a member twice"
        case controlCharacter = "a string holds an unescaped control character"
        case invalidEscape = "a string holds an escape that does not exist"
        case loneSurrogate = "a string holds half of a surrogate pair"
        case invalidUTF8 = "a string is not UTF-8"
        case invalidNumber = "a number is not spelt as JSON spells numbers"
        case numberOutOfRange = "a number is too long or too great"
    }

    /// The rule that was broken.
    package let reason: Reason
    /// The offset in bytes at which it was noticed.
    package let offset: Int

    package init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}
