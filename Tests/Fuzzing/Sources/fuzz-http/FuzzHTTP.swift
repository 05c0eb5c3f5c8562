import CLibFuzzer
import Glibc

/// Runs libFuzzer against the grammar or the connection machine, named by the environment variable `FUZZ_TARGET`.
@main
struct FuzzHTTP {
    private static let targets: [String: @Sendable ([UInt8]) -> Void] = [
        "http-request": fuzzRequest, "http-connection": fuzzConnection, "http-response": fuzzResponse, "url": fuzzURL,
    ]
    nonisolated(unsafe) private static var target: ([UInt8]) -> Void = { _ in }

    static func main() {
        let name = unsafe getenv("FUZZ_TARGET").map { unsafe String(cString: $0) } ?? ""
        guard let chosen = targets[name] else {
            print("FUZZ_TARGET is one of \(targets.keys.sorted().joined(separator: ", "))")
            exit(2)
        }
        unsafe target = chosen
        // libFuzzer may change both, and keeps their addresses as long as it runs.
        var count = CommandLine.argc
        var values: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = unsafe CommandLine.unsafeArgv
        let result = unsafe LLVMFuzzerRunDriver(&count, &values) { data, size in
            // An array of its own, so that the address sanitizer guards its ends.
            unsafe FuzzHTTP.target(Array(UnsafeBufferPointer(start: data, count: size)))
            return 0
        }
        exit(result)
    }
}
