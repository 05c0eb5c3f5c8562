internal import LLBytes

/// A JSON object and the bytes it was read from. A member reads as nil if its type differs from the requested one.
package struct JSONObject: ~Copyable {
    package var bytes: [UInt8] = []
    package private(set) var document: JSONDocument

    /// An object without content until ``read()`` fills it.
    package init(limits: JSONLimits = JSONLimits(), marksRepeatedMembers: Bool = false) {
        document = JSONDocument(limits: limits, marksRepeatedMembers: marksRepeatedMembers)
    }

    /// Reads one JSON object without repeated members; nil for anything else.
    package init?(_ bytes: [UInt8], limits: JSONLimits = JSONLimits()) {
        self.init(limits: limits)
        self.bytes = bytes
        guard (try? read()) == true else { return nil }
    }

    /// Reads a part of a JWS: strict base64url of one JSON object without repeated members (RFC 7515 section 4); nil for
    /// anything else.
    package init?(_ token: Span<UInt8>, _ part: Range<Int>, limits: JSONLimits) {
        self.init(limits: limits)
        guard Base64URL.decode(token, part, into: &bytes), (try? read()) == true else { return nil }
    }

    /// Reads the bytes as JSON; false if the value is not an object.
    package mutating func read() throws(JSONError) -> Bool {
        try document.parse(bytes)
        return document.isObject(document.root)
    }

    /// The outermost object's members in order, each with the node of its value.
    package var members: [(name: String, node: Int)] {
        document.children(of: document.root).map { (string($0), $0 + 1) }
    }

    /// The node of a member's value in the object at `node`, or in the outermost object if `node` is nil.
    package func member(_ name: StaticString, of node: Int? = nil) -> Int? {
        document.member(name, of: node ?? document.root, in: bytes.span)
    }

    package func object(_ name: StaticString, of node: Int? = nil) -> Int? {
        member(name, of: node).flatMap { document.isObject($0) ? $0 : nil }
    }

    package func bool(_ name: StaticString, of node: Int? = nil) -> Bool? {
        guard let node = member(name, of: node) else { return nil }
        return switch document.kind(node) {
        case .true: true
        case .false: false
        default: nil
        }
    }

    package func string(_ name: StaticString, of node: Int? = nil) -> String? {
        member(name, of: node).flatMap { document.isString($0) ? string($0) : nil }
    }

    package func integer(_ name: StaticString, of node: Int? = nil) -> Int64? {
        member(name, of: node).flatMap { document.integer($0, in: bytes.span) }
    }

    /// The value of a string or name; for any other node, its text.
    package func string(_ node: Int) -> String { document.string(node, in: bytes.span) }

    package func appendString(_ node: Int, to buffer: inout [UInt8]) {
        document.appendString(node, in: bytes.span, to: &buffer)
    }

    /// The strings of the array at a node; empty if the node is not an array.
    package func strings(_ node: Int) -> [String] {
        guard document.kind(node) == .array else { return [] }
        return document.children(of: node).filter { document.isString($0) }.map { string($0) }
    }
}

/// The three parts of a JWS in compact serialization (RFC 7515 section 7.1), as ranges of the received bytes.
package struct JWSCompactSerialization: Equatable, Sendable {
    /// Greatest length of a key ID in a header or a key, in bytes. 256: Facebook's key IDs have 40.
    package static let keyIDByteCount = 256

    /// The encoded JOSE header; never empty.
    package let header: Range<Int>
    /// The encoded payload; may be empty, because RFC 7515 allows an empty payload.
    package let payload: Range<Int>
    /// The encoded signature; never empty.
    package let signature: Range<Int>

    /// The signed bytes, exactly as received: everything before the second full stop (RFC 7515 section 5.2 step 8).
    package var signingInput: Range<Int> { 0..<payload.upperBound }

    /// Finds the three parts; nil if there are more or fewer, or if the header or the signature is empty. Decoding them
    /// checks their encoding.
    package init?(splitting token: Span<UInt8>) {
        let dot = UInt8(ascii: ".")
        let first = token.firstOffset(of: dot, from: 0)
        let second = first < token.count ? token.firstOffset(of: dot, from: first + 1) : first
        guard first > 0, second + 1 < token.count, token.firstOffset(of: dot, from: second + 1) == token.count else {
            return nil
        }
        header = 0..<first
        payload = first + 1..<second
        signature = second + 1..<token.count
    }
}

/// The length of a member name with its first and last eight bytes. They identify a name of at most sixteen bytes.
/// A longer name differs from those by its length; two longer ones may be equal here and differ in the middle.
package struct JSONName: Equatable, Sendable {
    /// Greatest length of a name that a program looks for. 16: two words hold it.
    package static let byteLimit = 16

    private var count: Int
    private var first: UInt64
    private var last: UInt64 = 0

    /// A name to look for: a constant of the program, since one above ``byteLimit`` traps.
    package init(_ text: String) {
        let bytes = Array(text.utf8)
        precondition(bytes.count <= Self.byteLimit, "a name is too long")
        self.init(bytes.span, bytes.indices)
    }

    @inline(__always)
    init(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        count = range.count
        if count >= 8 {
            first = bytes.word(at: range.lowerBound)
            last = bytes.word(at: range.upperBound - 8)
        } else {
            first = bytes.shortWord(range)
        }
    }

    @inline(__always)
    var hash: UInt64 {
        (first ^ last &* 0xC2B2_AE3D_27D4_EB4F ^ UInt64(truncatingIfNeeded: count)) &* 0x9E37_79B9_7F4A_7C15
    }
}

extension JSONObject {
    /// Finds the members with these distinct names. It writes the node of each one's value at the name's position in
    /// `nodes` and leaves other positions unchanged. `nodes` must have at least as many positions as there are names.
    /// Names are compared after escape decoding. If an accepted object repeats a name, its last member counts. Call it
    /// only after ``read()`` returned true.
    package func findMembers(named names: [JSONName], nodes found: inout MutableSpan<UInt32>) {
        let end = document.next(document.root)
        var node = document.firstChild(document.root)
        var start = 0
        while node < end {
            let name = name(node)
            // The names from `start` on come first: most texts keep the order of the list.
            if let place = names[start...].firstIndex(of: name) ?? names[..<start].firstIndex(of: name) {
                // The value fits 32 bits, as every index on the tape does.
                found[place] = UInt32(truncatingIfNeeded: node + 1)
                start = place + 1
            }
            node = document.next(node + 1)
        }
    }

    @inline(__always)
    private func name(_ node: Int) -> JSONName {
        guard document.isEscaped(node) else { return JSONName(bytes.span, document.range(node)) }
        var name: [UInt8] = []
        appendString(node, to: &name)
        return JSONName(name.span, name.indices)
    }
}

package enum JSONText {
    /// True if every byte represents itself in a JSON string: ASCII except control characters, `"` and `\`.
    package static func isPlain(_ bytes: Span<UInt8>) -> Bool {
        let start = bytes.skipUnmarked(from: 0) { $0.specialBytes }
        return (start..<bytes.count).allSatisfy {
            (0x20..<0x80).contains(bytes[$0]) && bytes[$0] != UInt8(ascii: "\"") && bytes[$0] != UInt8(ascii: "\\")
        }
    }

    /// The value of a string that the parser accepted. `range` is the text between its quotes.
    package static func value(_ bytes: Span<UInt8>, _ range: Range<Int>) -> String {
        String(capacity: range.count) { (output: inout OutputSpan<UInt8>) in write(bytes, range, to: &output) }
    }

    package static func append(_ bytes: Span<UInt8>, _ range: Range<Int>, to buffer: inout [UInt8]) {
        guard !range.isEmpty else { return }
        buffer.append(addingCapacity: range.count) { (output: inout OutputSpan<UInt8>) in
            write(bytes, range, to: &output)
        }
    }

    /// Writes the value of a string, with its escapes decoded (RFC 8259 section 7). An escape is never shorter than its
    /// value: a pair of twelve bytes is four bytes of UTF-8. It reads nothing outside the range, whatever the text is.
    private static func write(_ bytes: Span<UInt8>, _ range: Range<Int>, to output: inout OutputSpan<UInt8>) {
        let text = bytes.extracting(range)
        var offset = 0
        while true {
            let end = text.firstOffset(of: UInt8(ascii: "\\"), from: offset)
            output.append(text, offset..<end)
            guard end + 1 < text.count else { return }
            offset = end + 2
            switch text[end + 1] {
            case UInt8(ascii: "b"): output.append(0x08)
            case UInt8(ascii: "f"): output.append(0x0C)
            case UInt8(ascii: "n"): output.append(ASCII.lineFeed)
            case UInt8(ascii: "r"): output.append(ASCII.carriageReturn)
            case UInt8(ascii: "t"): output.append(ASCII.tab)
            case UInt8(ascii: "u"): writeCodePoint(text, &offset, to: &output)
            case let byte: output.append(byte)
            }
        }
    }

    /// Writes the character whose digits, with the second half of a pair, follow a `\u`.
    private static func writeCodePoint(_ text: Span<UInt8>, _ offset: inout Int, to output: inout OutputSpan<UInt8>) {
        // The parser has checked the digits, and that the other half of a pair follows as `\uDC00` to `\uDFFF`.
        var code = (try? JSONScanner.scanFourDigits(text, from: offset)) ?? 0
        offset += 4
        if code & 0xFC00 == 0xD800 {
            let half = (try? JSONScanner.scanFourDigits(text, from: offset + 2)) ?? 0
            code = 0x10000 + ((code & 0x3FF) << 10) + (half & 0x3FF)
            offset += 6
        }
        offset = min(offset, text.count)
        // A text that the parser accepted never holds half a pair.
        for byte in String(Unicode.Scalar(code) ?? "\u{FFFD}").utf8 { output.append(byte) }
    }

    package static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = []
        JSONWriter.string(text, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// Appends JSON (RFC 8259) to a reusable byte buffer. The caller writes the braces; members put their own commas.
package enum JSONWriter {
    @inline(__always)
    package static func raw(_ text: StaticString, to bytes: inout [UInt8]) { bytes.append(text) }

    /// Appends text as a JSON string with its quotes; control characters, `"` and `\` are escaped (section 7).
    package static func string(_ text: String, to bytes: inout [UInt8]) { string(text.utf8.span, to: &bytes) }

    package static func string(_ text: Span<UInt8>, to bytes: inout [UInt8]) {
        // The longest escape has six bytes.
        bytes.append(addingCapacity: text.count * 6 + 2) { (output: inout OutputSpan<UInt8>) in
            output.appendString(text)
        }
    }

    package static func integer(_ value: Int, to bytes: inout [UInt8]) {
        // A 64-bit number has at most a sign and twenty digits.
        bytes.append(addingCapacity: 21) { (output: inout OutputSpan<UInt8>) in output.append(decimal: value) }
    }

    package static func array<Element>(
        _ elements: some Sequence<Element>,
        to bytes: inout [UInt8],
        _ write: (Element, inout [UInt8]) -> Void
    ) {
        bytes.append(UInt8(ascii: "["))
        for (index, element) in elements.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            write(element, &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    // MARK: Members of the object that the buffer ends with

    /// Appends `"name":`, preceded by a comma unless the buffer ends with the object's brace.
    package static func name(_ name: StaticString, to bytes: inout [UInt8]) {
        raw(bytes.last == UInt8(ascii: "{") ? "\"" : ",\"", to: &bytes)
        raw(name, to: &bytes)
        raw("\":", to: &bytes)
    }

    package static func member(_ name: StaticString, _ value: String?, to bytes: inout [UInt8]) {
        guard let value else { return }
        self.name(name, to: &bytes)
        string(value, to: &bytes)
    }

    package static func member(_ name: StaticString, _ value: Int?, to bytes: inout [UInt8]) {
        guard let value else { return }
        self.name(name, to: &bytes)
        integer(value, to: &bytes)
    }

    package static func member(_ name: StaticString, _ value: Bool, to bytes: inout [UInt8]) {
        self.name(name, to: &bytes)
        raw(value ? "true" : "false", to: &bytes)
    }

    package static func member(_ name: StaticString, _ values: [String]?, to bytes: inout [UInt8]) {
        guard let values else { return }
        self.name(name, to: &bytes)
        array(values, to: &bytes) { string($0, to: &$1) }
    }
}

extension OutputSpan where Element == UInt8 {
    /// Appends UTF-8 text as a JSON string with its quotes; control characters, `"` and `\` are escaped (section 7).
    /// The output must have room for it.
    package mutating func appendString(_ text: Span<UInt8>) {
        append(UInt8(ascii: "\""))
        if JSONText.isPlain(text) {
            append(text, 0..<text.count)
        } else {
            for index in text.indices { appendEscaped(text[index]) }
        }
        append(UInt8(ascii: "\""))
    }

    /// Appends a byte as it is or, if JSON forbids that, as a short escape or `\u00` and two digits.
    private mutating func appendEscaped(_ byte: UInt8) {
        switch byte {
        case 0x0A: append("\\n")
        case 0x0D: append("\\r")
        case 0x09: append("\\t")
        case UInt8(ascii: "\""): append("\\\"")
        case UInt8(ascii: "\\"): append("\\\\")
        case 0x20...: append(byte)
        default:
            append("\\u00")
            append(Hexadecimal.digit(byte >> 4))
            append(Hexadecimal.digit(byte))
        }
    }
}
