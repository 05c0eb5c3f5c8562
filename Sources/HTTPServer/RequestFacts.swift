internal import HTTP1

/// The small facts of a request head, in one value: read together, they cost one access to the buffer that holds them.
struct RequestFacts {
    var method = HTTPMethod.get
    var minorVersion: UInt8 = 1
    var keepAlive = true
    var isChunked = false
    var expectsContinue = false
    var contentLength: Int?
    var byteCount = 0

    init() {}

    init(_ head: borrowing RequestHead) {
        method = head.method
        minorVersion = head.minorVersion
        keepAlive = head.keepAlive
        isChunked = head.isChunked
        expectsContinue = head.expectsContinue
        contentLength = head.contentLength
        byteCount = head.byteCount
    }

    /// True where a body follows (perhaps an empty chunked one).
    var hasBody: Bool { isChunked || (contentLength ?? 0) > 0 }
}
