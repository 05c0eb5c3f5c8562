internal import FoundationEssentials
internal import Glibc

/// Lines for people and scripts on standard error; standard output carries results alone.
enum StandardError {
    static func write(_ line: String) { StandardStream.write(Array((line + "\n").utf8), to: STDERR_FILENO) }

    /// Writes a whole line of a log, its line feed included.
    static func write(line: [UInt8]) { StandardStream.write(line, to: STDERR_FILENO) }
}

/// Results on standard output.
enum StandardOutput {
    static func write(_ text: String) { StandardStream.write(Array((text + "\n").utf8), to: STDOUT_FILENO) }
}

/// Writes whole texts to a descriptor without a buffer between, so that a reader on a pipe sees each line at once.
private enum StandardStream {
    static func write(_ whole: [UInt8], to descriptor: Int32) {
        var bytes = whole[...]
        while !bytes.isEmpty {
            // The buffer is the slice's own storage and its own count.
            let count = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                guard errno == EINTR else { return }
                continue
            }
            bytes = bytes.dropFirst(count)
        }
    }
}
