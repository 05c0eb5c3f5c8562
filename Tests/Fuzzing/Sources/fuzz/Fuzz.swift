import CLibFuzzer
import Glibc

/// Runs libFuzzer against one of the readers, named by the environment variable `FUZZ_TARGET`.
@main
struct Fuzz {
    static func main() {
        // libFuzzer may change both, and keeps their addresses as long as it runs.
        var count = CommandLine.argc
        var values: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = unsafe CommandLine.unsafeArgv
        let name = unsafe getenv("FUZZ_TARGET").map { unsafe String(cString: $0) } ?? ""
        let result: Int32
        switch name {
        case "json": result = unsafe LLVMFuzzerRunDriver(&count, &values) { unsafe run($0, $1, fuzzJSON) }
        case "base64url": result = unsafe LLVMFuzzerRunDriver(&count, &values) { unsafe run($0, $1, fuzzBase64URL) }
        case "jws": result = unsafe LLVMFuzzerRunDriver(&count, &values) { unsafe run($0, $1, fuzzJWS) }
        case "jwkset": result = unsafe LLVMFuzzerRunDriver(&count, &values) { unsafe run($0, $1, fuzzJWKSet) }
        case "token": result = unsafe LLVMFuzzerRunDriver(&count, &values) { unsafe run($0, $1, fuzzToken) }
        case "nonce": result = unsafe LLVMFuzzerRunDriver(&count, &values) { unsafe run($0, $1, fuzzNonce) }
        case "redis": result = unsafe LLVMFuzzerRunDriver(&count, &values) { unsafe run($0, $1, fuzzRedis) }
        case "signed-request":
            result = unsafe LLVMFuzzerRunDriver(&count, &values) { unsafe run($0, $1, fuzzSignedRequest) }
        case "token-info":
            result = unsafe LLVMFuzzerRunDriver(&count, &values) { unsafe run($0, $1, fuzzTokenInfo) }
        case "dpop": result = unsafe LLVMFuzzerRunDriver(&count, &values) { unsafe run($0, $1, fuzzDPoP) }
        case "access-token":
            result = unsafe LLVMFuzzerRunDriver(&count, &values) { unsafe run($0, $1, fuzzAccessToken) }
        case "own-token":
            result = unsafe LLVMFuzzerRunDriver(&count, &values) { unsafe run($0, $1, fuzzOwnToken) }
        default:
            print(
                "FUZZ_TARGET is one of json, base64url, jws, jwkset, token, nonce, redis, signed-request, "
                    + "token-info, dpop, access-token, own-token"
            )
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

/// Ends the run when a property does not hold: libFuzzer keeps the input.
func require(_ holds: Bool, _ what: StaticString) {
    guard holds else { fatalError("\(what)") }
}
