import CLibFuzzer
import Glibc

/// Runs libFuzzer against the grammar or the connection machine, named by the environment variable `FUZZ_TARGET`.
@main
struct FuzzHTTP {
    static func main() {
        // libFuzzer may change both, and keeps their addresses as long as it runs.
        var count = CommandLine.argc
        var values: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = unsafe CommandLine.unsafeArgv
        let name = unsafe getenv("FUZZ_TARGET").map { unsafe String(cString: $0) } ?? ""
        let result: Int32
        switch name {
        case "http-request": result = unsafe LLVMFuzzerRunDriver(&count, &values) { unsafe run($0, $1, fuzzRequest) }
        case "http-connection":
            result = unsafe LLVMFuzzerRunDriver(&count, &values) { unsafe run($0, $1, fuzzConnection) }
        case "http-response": result = unsafe LLVMFuzzerRunDriver(&count, &values) { unsafe run($0, $1, fuzzResponse) }
        case "url": result = unsafe LLVMFuzzerRunDriver(&count, &values) { unsafe run($0, $1, fuzzURL) }
        default:
            print("FUZZ_TARGET is one of http-request, http-connection, http-response, url")
            result = 2
        }
        exit(result)
    }
}

/// Hands one input to a target as an array of its own, so that the address sanitizer guards its ends.
private func run(_ data: UnsafePointer<UInt8>?, _ size: Int, _ target: ([UInt8]) -> Void) -> Int32 {
    target(unsafe Array(UnsafeBufferPointer(start: data, count: size)))
    return 0
}
