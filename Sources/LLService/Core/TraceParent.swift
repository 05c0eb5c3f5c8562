internal import LLHTTP

/// The caller's `traceparent` (W3C Trace Context, section 3.2): its trace id joins this service's log lines with those
/// of the services before it.
enum TraceParent {
    private static let length = 55

    /// The trace id's place in the head; nil if there is no `traceparent`, more than one, or none that is valid.
    static func traceID(_ head: borrowing RequestHead, bytes: Span<UInt8>) -> Range<Int>? {
        guard head.count(of: "traceparent", in: bytes) == 1, let value = head.value(of: "traceparent", in: bytes) else {
            return nil
        }
        return traceID(in: bytes, value)
    }

    static func traceIDText(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> String? {
        guard let traceID = traceID(head, bytes: bytes) else { return nil }
        return String(decoding: traceID.map { bytes[$0] }, as: UTF8.self)
    }

    /// The `traceparent` to pass on with a call that the request causes; nil without a trace id. It has the fields of
    /// version 00, even if the caller's version is later (section 3.2.1).
    static func passedOn(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> String? {
        guard let traceID = traceID(head, bytes: bytes) else { return nil }
        // The range from the dash after the version to the end of the flags.
        let fields = traceID.lowerBound - 1..<traceID.upperBound + 20
        return "00" + String(decoding: fields.map { bytes[$0] }, as: UTF8.self)
    }

    /// The trace id's place in a `traceparent`; nil if that is not valid.
    static func traceID(in bytes: Span<UInt8>, _ value: Range<Int>) -> Range<Int>? {
        let start = value.lowerBound
        guard start >= 0, value.upperBound <= bytes.count, value.count >= length else { return nil }
        // Bounds: every index below is at most start + 55, and the last is read only if value.count is at least 56.
        for offset in 0..<length {
            let byte = bytes[start + offset]
            let isDash = offset == 2 || offset == 35 || offset == 52
            guard isDash ? byte == UInt8(ascii: "-") : isLowerHexadecimal(byte) else { return nil }
        }
        let (version, traceID, parentID) = (start..<start + 2, start + 3..<start + 35, start + 36..<start + 52)
        guard !isAll("f", bytes, version), !isAll("0", bytes, traceID), !isAll("0", bytes, parentID) else { return nil }
        if value.count > length {
            // A later version may append fields after a dash; version 00 may not.
            guard !isAll("0", bytes, version), bytes[start + length] == UInt8(ascii: "-") else { return nil }
        }
        return traceID
    }

    private static func isLowerHexadecimal(_ byte: UInt8) -> Bool {
        byte &- 0x30 < 10 || byte &- 0x61 < 6
    }

    private static func isAll(_ digit: Unicode.Scalar, _ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        range.allSatisfy { bytes[$0] == UInt8(ascii: digit) }
    }
}
