internal import ArgumentParser
internal import Glibc
internal import VerificationService

/// Gets the token to judge, without the white space around it.
enum TokenInput {
    /// Four times the greatest token: enough to tell that it is too long.
    static let byteLimit = 32_768

    /// The token from where the command line says.
    static func read(argument: String?, file: String?) throws -> [UInt8] {
        if let argument { return argument == "-" ? readStandardInput() : Array(argument.utf8) }
        guard let file else { return [] }
        do throws(FileContents.Failure) {
            return trimmed(try FileContents.read(path: file, limit: byteLimit))
        } catch {
            StandardError.write("limited-login: \(file) cannot be read: \(error.reason)")
            throw Exit.verifyUsage
        }
    }

    static func readStandardInput() -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while bytes.count <= byteLimit {
            // The buffer is the array's own storage and its own count.
            let count = unsafe chunk.withUnsafeMutableBytes {
                unsafe Glibc.read(STDIN_FILENO, $0.baseAddress, $0.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            bytes.append(contentsOf: chunk[..<count])
        }
        return trimmed(bytes)
    }

    private static func trimmed(_ bytes: [UInt8]) -> [UInt8] {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0d).contains($0) }
        let start = bytes.drop(while: isBlank)
        let end = start.lastIndex { !isBlank($0) }.map { start.index(after: $0) } ?? start.startIndex
        return Array(start[..<end])
    }
}
