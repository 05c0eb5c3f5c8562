internal import Bytes

/// One response, filled in by a handler. The value is reused: its storage survives ``reset()``.
///
/// `Date`, `Content-Length`, `Connection` and `Transfer-Encoding` belong to the encoder; a handler adds none of them.
package struct HTTPResponse: ~Copyable {
    /// The status code, 200 … 599.
    package var status: UInt16 = 200
    /// Whole field lines, each with its CRLF, in the order they were added.
    package private(set) var fields: [UInt8] = []
    /// The content. For HEAD it is what GET would send: the encoder sends its length alone (RFC 9110 §9.3.2).
    package var body: [UInt8] = []
    /// True where ``body`` is shared with other responses: it is sent from where it lies, never copied.
    package private(set) var bodyIsShared = false
    /// True where the connection must end after this response.
    package var closesConnection = false

    package init() {}

    /// Forgets the response and keeps the storage.
    package mutating func reset() {
        status = 200
        // To empty what is empty costs as much as anything else would.
        if !fields.isEmpty { fields.removeAll(keepingCapacity: true) }
        if !body.isEmpty { body.removeAll(keepingCapacity: !bodyIsShared) }
        bodyIsShared = false
        closesConnection = false
    }

    /// Makes `content` the body without a copy: for large contents that do not change.
    package mutating func share(_ content: [UInt8]) {
        body = content
        bodyIsShared = true
    }

    /// Adds one whole constant field line without its CRLF, for instance `Cache-Control: no-store`.
    package mutating func addField(_ line: StaticString) {
        // A StaticString's bytes are a constant of the program; nothing from outside can be in it.
        fields.append(addingCapacity: line.utf8CodeUnitCount + 2) { (output: inout OutputSpan<UInt8>) in
            output.append(line)
            output.append("\r\n")
        }
    }

    /// Adds a field with a value made at run time.
    /// - Returns: False, and nothing added, where the value holds a control byte other than a tab, so that it could
    ///   split the response (RFC 9112 §11.1).
    @discardableResult
    package mutating func addField(_ name: StaticString, _ value: Span<UInt8>) -> Bool {
        guard FieldGrammar.isValue(value) else { return false }
        // As above: a constant of the program.
        fields.append(addingCapacity: name.utf8CodeUnitCount + value.count + 4) { (output: inout OutputSpan<UInt8>) in
            output.append(name)
            output.append(": ")
            output.append(value)
            output.append("\r\n")
        }
        return true
    }

    /// As above, with a name that was configured, and a value that is written in its place.
    /// - Parameters:
    ///   - byteCount: the greatest length of the value.
    ///   - write: appends the value; says false, and nothing is added, where there is none.
    @discardableResult
    package mutating func addField(
        _ name: FieldName,
        atMost byteCount: Int,
        _ write: (inout OutputSpan<UInt8>) -> Bool
    ) -> Bool {
        let (name, start) = (name.bytes.span, fields.count)
        var isThere = false
        fields.append(addingCapacity: name.count + byteCount + 4) { (output: inout OutputSpan<UInt8>) in
            output.append(name)
            output.append(": ")
            isThere = write(&output)
            output.append("\r\n")
        }
        if isThere, FieldGrammar.isValue(fields.span.extracting(start..<fields.count - 2)) { return true }
        fields.removeLast(fields.count - start)
        return false
    }

    /// Adds whole field lines that another response had.
    package mutating func addFields(_ lines: [UInt8]) { fields += lines }

    /// As above, for an array.
    @discardableResult
    package mutating func addField(_ name: StaticString, _ value: [UInt8]) -> Bool {
        addField(name, value.span)
    }

    /// As above, for text.
    @discardableResult
    package mutating func addField(_ name: StaticString, _ value: String) -> Bool {
        addField(name, Array(value.utf8).span)
    }
}
