internal import ArgumentParser
internal import VerificationService

struct ClientKey: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "client-key",
        abstract: "Makes keys for the callers of the service.",
        subcommands: [New.self]
    )

    struct New: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints a new key, once, and the line to add to the client keys file.",
            discussion: "Give the key to the caller; add the line to the file and send the service SIGHUP."
        )

        @Argument(help: "The caller's name, 1 to 64 of [A-Za-z0-9._-].")
        var name: String

        func run() throws {
            guard let (key, line) = ClientKeys.make(name: name) else {
                throw ValidationError("'\(name)' is no name; use 1 to 64 of [A-Za-z0-9._-].")
            }
            StandardOutput.write("key:  \(key)")
            StandardOutput.write("line: \(line)")
        }
    }
}
