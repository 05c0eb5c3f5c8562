import ArgumentParser

@main
struct LimitedLoginCommand: ParsableCommand {
    func run() {}
}
