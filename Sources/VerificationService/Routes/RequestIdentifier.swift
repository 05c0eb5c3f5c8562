package import HTTP1
package import Networking

/// The `X-Request-Id` of an answer: the caller's where it is well-formed, else one of our own.
///
/// Our own is made of a number drawn at the start of the process, the connection's number and the request's place on
/// it, so that every visit of one request has the same one without keeping it anywhere.
package struct RequestIdentifier: Sendable {
    /// Greatest length of a caller's identifier, in bytes; longer ones are replaced by ours.
    package static let lengthLimit = 128

    private let process: UInt32

    /// - Parameter process: a random number that tells this process's identifiers from another's.
    package init(process: UInt32) { self.process = process }

    /// Appends the identifier of a request.
    package func append(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        context: RequestContext,
        to buffer: inout [UInt8]
    ) {
        if let value = head.value(of: "x-request-id", in: bytes), Self.isWellFormed(bytes, value) {
            buffer.append(bytes, value)
            return
        }
        // Three numbers of at most 16 digits and two hyphens.
        buffer.append(addingCapacity: 50) { (output: inout OutputSpan<UInt8>) in
            hexadecimal(UInt64(process), to: &output)
            output.append(UInt8(ascii: "-"))
            hexadecimal(context.connectionID, to: &output)
            output.append(UInt8(ascii: "-"))
            hexadecimal(UInt64(truncatingIfNeeded: context.requestsBefore), to: &output)
        }
    }

    /// Appends the identifier of an answer to something that was no readable request.
    package func append(failure number: UInt64, to buffer: inout [UInt8]) {
        buffer.append(addingCapacity: 50) { (output: inout OutputSpan<UInt8>) in
            hexadecimal(UInt64(process), to: &output)
            output.append("-f")
            hexadecimal(number, to: &output)
        }
    }

    /// 1 to 128 of `[A-Za-z0-9._-]`: safe in a log line, a header field and a JSON string alike.
    static func isWellFormed(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        guard (1...lengthLimit).contains(range.count), range.lowerBound >= 0, range.upperBound <= bytes.count else {
            return false
        }
        for index in range {
            switch bytes[index] {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
                continue
            default: return false
            }
        }
        return true
    }

    private func hexadecimal(_ value: UInt64, to buffer: inout OutputSpan<UInt8>) {
        var shift = max(0, (63 - value.leadingZeroBitCount) / 4 * 4)
        while shift >= 0 {
            let digit = UInt8(truncatingIfNeeded: value >> UInt64(shift)) & 0x0f
            buffer.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
            shift -= 4
        }
    }
}
