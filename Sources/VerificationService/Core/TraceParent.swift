internal import Bytes
internal import HTTP1

/// The caller's `traceparent` (W3C Trace Context, section 3.2): its trace id joins this service's log lines with those
/// of the services before it.
enum TraceParent {
    private static let traceIDStart = 3
    private static let parentIDStart = 36
    private static let flagsStart = 53
    private static let length = 55

    /// The trace id's place in the head; nil where there is no `traceparent`, more than one, or none that is valid.
    static func traceID(_ head: borrowing RequestHead, bytes: Span<UInt8>) -> Range<Int>? {
        guard head.count(of: "traceparent", in: bytes) == 1, let value = head.value(of: "traceparent", in: bytes) else {
            return nil
        }
        return traceID(in: bytes, value)
    }

    static func traceIDText(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> String? {
        guard let traceID = traceID(head, bytes: bytes) else { return nil }
        var text: [UInt8] = []
        text.append(bytes, traceID)
        return String(decoding: text, as: UTF8.self)
    }

    /// What is passed on with a call that is made for the request; nil where there is no trace id. Of a later version the
    /// fields of version 00 (section 3.2.1).
    static func passedOn(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> String? {
        guard let traceID = traceID(head, bytes: bytes) else { return nil }
        var text: [UInt8] = []
        text.append("00")
        text.append(bytes, traceID.lowerBound - 1..<traceID.lowerBound - traceIDStart + length)
        return String(decoding: text, as: UTF8.self)
    }

    /// The trace id's place in a `traceparent`; nil where that is not valid.
    static func traceID(in bytes: Span<UInt8>, _ value: Range<Int>) -> Range<Int>? {
        let start = value.lowerBound
        guard start >= 0, value.upperBound <= bytes.count, value.count >= length else { return nil }
        // Bounds: every index below is start + 54 at most, and value.count is 55 at least.
        let version = start..<start + 2
        let traceID = start + traceIDStart..<start + traceIDStart + 32
        let parentID = start + parentIDStart..<start + parentIDStart + 16
        let flags = start + flagsStart..<start + length
        for dash in [start + 2, traceID.upperBound, parentID.upperBound] where bytes[dash] != UInt8(ascii: "-") {
            return nil
        }
        for part in [version, traceID, parentID, flags] where !isLowerHexadecimal(bytes, part) { return nil }
        guard !isAll("f", bytes, version), !isAll("0", bytes, traceID), !isAll("0", bytes, parentID) else { return nil }
        if value.count > length {
            // A later version may append fields after a dash; version 00 may not.
            guard !isAll("0", bytes, version), bytes[start + length] == UInt8(ascii: "-") else { return nil }
        }
        return traceID
    }

    private static func isLowerHexadecimal(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        for index in range {
            guard Hexadecimal.value(bytes[index]) != nil, bytes[index] >= 0x61 || bytes[index] < 0x41 else {
                return false
            }
        }
        return true
    }

    private static func isAll(_ digit: Unicode.Scalar, _ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        for index in range where bytes[index] != UInt8(ascii: digit) { return false }
        return true
    }
}
