internal import LLHTTP

/// A line of a file named by a setting, with a secret or a client.
package struct FileLine {
    let text: ArraySlice<UInt8>
    /// The file and the line's number. Errors name it and never quote the line.
    let place: String

    /// The words between white space; none for a comment, which may follow white space here.
    var words: [ArraySlice<UInt8>] {
        let words = text.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
        return words.first?.first == UInt8(ascii: "#") ? [] : words
    }

    static func all(of text: [UInt8], place: String) -> [FileLine] {
        let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return lines.enumerated().compactMap { index, line in
            // Editors of other systems end lines with a carriage return.
            let line = FileLine(text: line.last == 0x0D ? line.dropLast() : line, place: "\(place): line \(index + 1)")
            return line.text.isEmpty || line.text.first == UInt8(ascii: "#") ? nil : line
        }
    }

    /// The one or two different secrets of a file, each on its own line.
    static func secrets<Secret: Equatable>(
        of text: [UInt8],
        place: String,
        none: String,
        _ read: (FileLine) throws(ConfigurationError) -> Secret
    ) throws(ConfigurationError) -> (Secret, Secret?) {
        var secrets: [Secret] = []
        for line in all(of: text, place: place) {
            guard secrets.count < 2 else { throw line.error("there are more than two secrets") }
            let secret = try read(line)
            guard secrets.first != secret else { throw line.error("the same secret stands in the file twice") }
            secrets.append(secret)
        }
        guard let first = secrets.first else { throw ConfigurationError(place: place, reason: none) }
        return (first, secrets.count > 1 ? secrets[1] : nil)
    }

    package static func text(ofFile path: String, limit: Int) throws(ConfigurationError) -> [UInt8] {
        let text: [UInt8]
        do throws(FileContents.Failure) {
            text = try FileContents.read(path: path, limit: limit)
        } catch {
            throw ConfigurationError(path, error)
        }
        // Editors of other systems write a byte order mark, which would become part of the first word.
        guard !text.starts(with: [0xEF, 0xBB, 0xBF]), !text.starts(with: [0xFF, 0xFE]),
            !text.starts(with: [0xFE, 0xFF])
        else {
            throw ConfigurationError(
                place: path,
                reason: "the file begins with a byte order mark (BOM): save it as UTF-8 without one"
            )
        }
        return text
    }

    func error(_ reason: String) -> ConfigurationError { ConfigurationError(place: place, reason: reason) }
}
