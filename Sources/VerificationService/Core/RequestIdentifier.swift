internal import Bytes
package import HTTP1
package import HTTPServer

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

    /// Replaces the text of `buffer` by the identifier of a request.
    package func write(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        context: RequestContext,
        into buffer: inout [UInt8]
    ) {
        buffer.removeAll(keepingCapacity: true)
        if let value = head.value(of: "x-request-id", in: bytes), Self.isWellFormed(bytes, value) {
            buffer.append(bytes, value)
            return
        }
        // Three numbers of at most 16 digits and two hyphens.
        buffer.append(addingCapacity: 50) { (output: inout OutputSpan<UInt8>) in
            output.append(hexadecimal: UInt64(process))
            output.append(UInt8(ascii: "-"))
            output.append(hexadecimal: context.connectionID)
            output.append(UInt8(ascii: "-"))
            output.append(hexadecimal: UInt64(truncatingIfNeeded: context.requestsBefore))
        }
    }

    /// 1 to 128 of `[A-Za-z0-9._-]`: safe in a log line, a header field and a JSON string alike.
    static func isWellFormed(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        guard (1...lengthLimit).contains(range.count), range.lowerBound >= 0, range.upperBound <= bytes.count else {
            return false
        }
        for index in range {
            guard ASCII.isAlphanumeric(bytes[index]) || "._-".utf8.contains(bytes[index]) else { return false }
        }
        return true
    }
}
