/// Parses a response head from bytes that may arrive in any pieces; interim responses (1xx) are passed over.
///
/// A client needs no speed here: the head is looked for as a whole and then read once. What is decided depends on the
/// bytes alone.
package struct ResponseParser: Sendable {
    /// The outcome of looking at the bytes there are.
    package enum Outcome: Equatable, Sendable {
        case complete(ResponseHead)
        case needMore
        case reject(ResponseRefusal)
    }

    let headLimit: Int
    let fieldLimit: Int
    /// Whether the request was CONNECT: then a 2xx has no body, and what follows is the tunnel (RFC 9112 §6.3).
    let answersConnect: Bool
    // Where the head now looked for begins: behind the interim responses.
    private var start = 0
    // No empty line ends before this position.
    private var searched = 0

    /// - Parameters:
    ///   - headLimit: Bytes of all heads together, interim responses included.
    ///   - fieldLimit: Field lines of one head.
    package init(headLimit: Int, fieldLimit: Int, answersConnect: Bool = false) {
        self.headLimit = headLimit
        self.fieldLimit = fieldLimit
        self.answersConnect = answersConnect
    }

    /// Looks at all bytes of the response so far, from its first; at least as many as at the last call.
    package mutating func parse(_ bytes: Span<UInt8>) -> Outcome {
        do throws(ResponseRefusal) {
            while true {
                try checkPrefix(bytes)
                guard let end = try endOfHead(bytes) else { return .needMore }
                let head = try read(bytes, start..<end)
                // RFC 9110 §15.2: interim responses precede the final one; 101 would need a request for it.
                guard head.status < 200 else { return .complete(head) }
                guard head.status != 101 else { throw .unexpectedUpgrade }
                start = end
                searched = end
            }
        } catch {
            return .reject(error)
        }
    }

    /// A peer that does not speak HTTP is refused by its first bytes, not when it has sent enough.
    private func checkPrefix(_ bytes: Span<UInt8>) throws(ResponseRefusal) {
        let prefix: StaticString = "HTTP/"
        let count = min(max(bytes.count - start, 0), prefix.utf8CodeUnitCount)
        for offset in 0..<count {
            // offset < utf8CodeUnitCount, by the minimum above.
            let expected = unsafe prefix.utf8Start[offset]
            guard bytes[start + offset] == expected else { throw .malformedStatusLine }
        }
    }

    /// The position behind the empty line that ends the head; nil while it has not come.
    private mutating func endOfHead(_ bytes: Span<UInt8>) throws(ResponseRefusal) -> Int? {
        let limit = min(bytes.count, headLimit)
        var index = max(searched, start + 3)
        while index < limit {
            if bytes[index] == ASCII.lineFeed {
                // RFC 9112 §2.2: LF alone is no line end here. `index` >= `start` + 3.
                guard bytes[index - 1] == ASCII.carriageReturn else { throw .malformedLineEnd }
                if bytes[index - 2] == ASCII.lineFeed, bytes[index - 3] == ASCII.carriageReturn { return index + 1 }
            }
            index += 1
        }
        searched = index
        if bytes.count >= headLimit { throw .headTooLarge }
        return nil
    }
}
