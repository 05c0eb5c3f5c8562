internal import OpenSSL

/// A line of a file that a setting names, with a secret or a client. Empty lines, and lines that begin with `#`, are
/// comments.
package struct FileLine {
    /// Greatest size of such a file, in bytes: enough for a thousand clients.
    private static let fileByteLimit = 262_144

    /// The line as it stands, without its end.
    let text: ArraySlice<UInt8>
    /// The file and the line's number: how messages name it. They never quote a line.
    let place: String

    /// What stands between spaces and tabs.
    var words: [ArraySlice<UInt8>] { text.split { $0 == 0x20 || $0 == 0x09 } }

    /// The lines of a file's text that are no comments.
    static func all(of text: [UInt8], place: String) -> [FileLine] {
        let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return lines.enumerated().compactMap { index, line in
            // Editors of other systems end lines with a carriage return.
            let line = FileLine(text: line.last == 0x0D ? line.dropLast() : line, place: "\(place): line \(index + 1)")
            return line.words.first.map { $0.first != UInt8(ascii: "#") } == true ? line : nil
        }
    }

    /// The text of a file that a setting names.
    package static func text(ofFile path: String) throws(ConfigurationError) -> [UInt8] {
        do throws(FileContents.Failure) {
            return try FileContents.read(path: path, limit: fileByteLimit)
        } catch {
            throw ConfigurationError(path, error)
        }
    }

    func error(_ reason: String) -> ConfigurationError { ConfigurationError(place: place, reason: reason) }
}
