internal import HTTP1

/// The parts of `/users/{user_id}/permissions` and `/users/{user_id}/permissions/{permission}`, not yet judged.
struct UserPath {
    let user: Range<Int>
    /// Nil where the path ends before it.
    let permission: Range<Int>?

    /// - Returns: nil for any other path; an empty part, or a slash too many, makes it another.
    init?(_ bytes: Span<UInt8>, _ path: Range<Int>) {
        let prefix: StaticString = "/users/"
        let middle: StaticString = "/permissions"
        let start = path.lowerBound + prefix.utf8CodeUnitCount
        guard start < path.upperBound, bytes.equal(path.lowerBound..<start, prefix) else { return nil }
        var end = start
        while end < path.upperBound, bytes[end] != UInt8(ascii: "/") { end += 1 }
        let rest = end + middle.utf8CodeUnitCount
        guard end > start, rest <= path.upperBound, bytes.equal(end..<rest, middle) else { return nil }
        user = start..<end
        guard rest < path.upperBound else {
            permission = nil
            return
        }
        guard bytes[rest] == UInt8(ascii: "/"), rest + 1 < path.upperBound else { return nil }
        for index in (rest + 1)..<path.upperBound where bytes[index] == UInt8(ascii: "/") { return nil }
        permission = (rest + 1)..<path.upperBound
    }
}
