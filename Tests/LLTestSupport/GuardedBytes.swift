internal import Glibc

/// A copy of some bytes before an inaccessible page: reading one byte too far stops the process.
///
/// Safe to use: the object owns its memory, and every access below is bounded.
@safe
package final class GuardedBytes {
    private let base: UnsafeMutableRawPointer
    private let mappedCount: Int
    private let usable: Int

    /// Allocates room for `capacity` bytes; nil if the system refuses.
    package init?(capacity: Int) {
        let page = Int(getpagesize())
        let pages = (capacity + page - 1) / page + 1
        mappedCount = (pages + 1) * page
        usable = pages * page
        let memory = unsafe mmap(nil, mappedCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let memory = unsafe memory, unsafe memory != MAP_FAILED else { return nil }
        unsafe base = memory
        // The page behind the usable ones is part of the mapping.
        guard unsafe mprotect(memory + usable, page, PROT_NONE) == 0 else { return nil }
    }

    /// Calls `body` with the bytes, at most `capacity` of them. They end at the inaccessible page.
    package func withSpan<Result>(_ bytes: ArraySlice<UInt8>, _ body: (Span<UInt8>) -> Result) -> Result {
        let count = min(bytes.count, usable)
        // count <= usable, so the copy lies within the accessible pages, which live as long as this object.
        let start = unsafe base + (usable - count)
        unsafe UnsafeMutableRawBufferPointer(start: start, count: count).copyBytes(from: bytes.prefix(count))
        let buffer = unsafe UnsafeBufferPointer(start: start.assumingMemoryBound(to: UInt8.self), count: count)
        return unsafe body(buffer.span)
    }

    deinit {
        unsafe munmap(base, mappedCount)
    }
}
