internal import ArgumentParser
internal import Glibc
internal import LLHTTP
internal import LLService

struct ClientKey: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "client-key",
        abstract: "Makes keys for the callers of the service.",
        subcommands: [New.self]
    )

    struct New: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "new",
            abstract: "Prints a new key, once, and the line to add to the client keys file.",
            discussion: """
                Give the key to the caller; add the line to the file, or have --append do it.
                Exit code 0 done, 64 usage or a name that is there already, 78 a file that cannot be used.
                """
        )

        @Argument(help: "The caller's name, 1 to 64 of [A-Za-z0-9._-].")
        var name: String

        @Option(
            name: .customLong("append"),
            help: ArgumentHelp("Add the line to this file; a new file gets mode 0600.", valueName: "file"),
            completion: .file()
        )
        var file: String?

        func run() throws {
            guard let (key, line) = ClientKeys.make(name: name) else {
                throw ValidationError("'\(name)' is no name; use 1 to 64 of [A-Za-z0-9._-].")
            }
            if let file { try append(line, to: file) }
            StandardOutput.write("key:  \(key)")
            if file == nil { StandardOutput.write("line: \(line)") }
        }

        private func append(_ line: String, to file: String) throws {
            var text: [UInt8] = []
            do throws(FileContents.Failure) {
                text = try FileContents.read(path: file, limit: ClientKeys.fileByteLimit)
            } catch {
                guard error.isMissing else { throw ConfigurationError(file, error) }
            }
            guard let addition = try ClientKeys.addition(of: line, name: name, to: text, place: file) else {
                throw ValidationError("\(file) has a key of '\(name)' already; add a second one by hand to replace it.")
            }
            try SecretFile.append(addition, to: file)
        }
    }
}

/// The place for a new secret: standard output, or a new file.
struct SecretFile: ParsableArguments {
    @Option(
        help: ArgumentHelp("Write a new file with mode 0600; a file that is there is left alone.", valueName: "file"),
        completion: .file()
    )
    var out: String?

    func write(_ secret: String) throws {
        guard let out else { return StandardOutput.write(secret) }
        try Self.append(Array((secret + "\n").utf8), to: out, O_EXCL)
        StandardOutput.write(line: "\(out) is written; its owner alone can read it.")
    }

    /// Adds text at a file's end; a new file gets mode 0600. `flag` is one more of open(2).
    fileprivate static func append(_ text: [UInt8], to file: String, _ flag: Int32 = 0) throws {
        let descriptor = unsafe open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flag, 0o600)
        guard descriptor >= 0 || errno != EEXIST else {
            throw ValidationError("\(file) is there already, and is left alone; name another file, or move it away.")
        }
        guard descriptor >= 0 else { throw failure(file) }
        defer { close(descriptor) }
        // The buffer is the array's own storage and its own count. One call writes the whole text.
        let count = unsafe text.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
        guard count == text.count else { throw failure(file) }
    }

    private static func failure(_ file: String) -> StartError {
        StartError("\(file): it cannot be written: \(SystemReason.sentence(for: errno))")
    }
}
