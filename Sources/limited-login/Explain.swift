internal import ArgumentParser
internal import LimitedLogin

struct Explain: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Says what an error of Facebook means, and what helps.",
        subcommands: [OfGraph.self]
    )

    struct OfGraph: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "graph-error",
            abstract: "Explains an error that the Graph API answered.",
            discussion: "Exit code 0 done, 64 usage, or a text that is no error of Graph."
        )

        @Argument(help: "Graph's answer, a JSON object with the member error, or - to read it from standard input.")
        var answer: String

        func run() throws {
            let text = try TokenInput.read(argument: answer, file: nil)
            guard let advice = GraphErrorAdvice(json: text) else {
                throw ValidationError("The text is no error of Graph: a JSON object with error and its code is needed.")
            }
            StandardOutput.write(line: "\(advice.remedy.rawValue): \(advice.cause)  (\(advice.name))")
        }
    }
}
