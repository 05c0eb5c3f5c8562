internal import FoundationEssentials
internal import LLHTTP
internal import LLJOSE
internal import LLService
internal import LimitedLogin

/// `stages STAGE COUNT REQUESTS KEYS APP`: runs one stage of a request COUNT times and prints the nanoseconds of each.
///
/// REQUESTS is a file for the load generator, KEYS a JWK Set, APP the app ID in the tokens. `all` lists the stages.
/// Under a tool that counts instructions, the difference between the results of two COUNTs is the stage's own work,
/// without the start of the program and the reading of the files.
@main
struct Stages {
    static func main() throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 6, let count = Int(arguments[2]), let stage = Stage(rawValue: arguments[1])
        else {
            print(Stage.allCases.map(\.rawValue).joined(separator: " "))
            return
        }
        let inputs = try Inputs(arguments[3], atMost: 500)
        let keys = [UInt8](try Data(contentsOf: URL(fileURLWithPath: arguments[4])))
        let set = try JWKSet(parsing: keys.span)
        let service = try Service(keys: arguments[4], appID: arguments[5], isIssuing: stage == .exchange)
        if stage == .revocations { service.revoke(100_000) }
        let prepared = try Prepared(inputs, keySet: set, appID: arguments[5])
        let stages = StageRunner(prepared, inputs: inputs, service: service)
        let start = MonotonicClock.now()
        for index in 0..<count { try stages.run(stage, index % inputs.requests.count) }
        let nanoseconds = MonotonicClock.now().nanoseconds(since: start)
        print(Double(nanoseconds) / Double(max(count, 1)))
    }
}
