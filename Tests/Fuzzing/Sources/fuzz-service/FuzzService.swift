import CLibFuzzer
import Glibc

/// Runs libFuzzer against the whole service without its sockets: any request, through the real connection machine. If
/// the environment variable `FUZZ_TARGET` is `form`, each input is only a form.
@main
struct FuzzService {
    /// The one worker of this process; libFuzzer calls from one thread alone.
    nonisolated(unsafe) static var fixture: ServiceFixture?

    static func main() async throws {
        let target = unsafe getenv("FUZZ_TARGET").map { unsafe String(cString: $0) }
        unsafe fixture = target == "form" ? nil : try await ServiceFixture()
        // libFuzzer may change both, and keeps their addresses as long as it runs.
        var count = CommandLine.argc
        var values: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = unsafe CommandLine.unsafeArgv
        let result = unsafe LLVMFuzzerRunDriver(&count, &values) { data, size in
            // An array of its own, so that the address sanitizer guards its ends.
            let input = unsafe Array(UnsafeBufferPointer(start: data, count: size))
            if let fixture = unsafe FuzzService.fixture { fixture.judge(input) } else { fuzzForm(input) }
            return 0
        }
        exit(result)
    }
}
