#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// The system's own text for an error number, such as "No such file or directory".
package enum SystemReason {
    package static func sentence(for number: Int32) -> String {
        // `strerror` returns a constant or thread-local text that ends in NUL. The text is copied at once.
        guard let text = unsafe strerror(number) else { return "error \(number)" }
        return unsafe String(cString: text)
    }
}
