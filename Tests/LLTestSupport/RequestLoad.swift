internal import Dispatch
package import LLSockets
internal import Synchronization

/// Clients on threads of their own that send one request over and over until the server is gone.
package final class RequestLoad: Sendable {
    private let address: ListenAddress
    private let request: String
    private let group = DispatchGroup()
    private let answeredCount = Atomic<Int>(0)
    private let refusedCount = Atomic<Int>(0)
    private let unansweredCount = Atomic<Int>(0)

    package init(_ address: ListenAddress, request: String) {
        self.address = address
        self.request = request
    }

    /// Requests answered.
    package var answered: Int { answeredCount.load(ordering: .relaxed) }
    /// Of these: with another status than 200, but for those shed because the machine is busy (503 `overloaded`).
    package var refused: Int { refusedCount.load(ordering: .relaxed) }
    /// Requests sent on a connection that was made, and not answered.
    package var unanswered: Int { unansweredCount.load(ordering: .relaxed) }

    /// - Parameters:
    ///   - persistent: Clients that keep their connection as long as the server does.
    ///   - single: Clients that make a connection for each request.
    package func start(persistent: Int, single: Int) {
        for number in 0..<persistent + single {
            DispatchQueue(label: "load-\(number)").async(group: group) { [self] in
                run(keepsConnection: number < persistent)
            }
        }
    }

    /// False where so many answers have not come within a minute.
    package func waitUntilAnswered(_ count: Int) -> Bool {
        let deadline = MonotonicClock.now() + .seconds(60)
        while answered < count, MonotonicClock.now() < deadline {
            if group.wait(timeout: .now() + .milliseconds(10)) == .success { break }
        }
        return answered >= count
    }

    package func waitForEnd() { group.wait() }

    private func run(keepsConnection: Bool) {
        while let client = try? BlockingClient(address) {
            var isOpen = true
            while isOpen {
                guard let response = client.exchange(request) else {
                    unansweredCount.wrappingAdd(1, ordering: .relaxed)
                    break
                }
                answeredCount.wrappingAdd(1, ordering: .relaxed)
                let isShed = response.status == 503 && response.text.contains("\"code\":\"overloaded\"")
                if response.status != 200, !isShed { refusedCount.wrappingAdd(1, ordering: .relaxed) }
                isOpen = keepsConnection && response["connection"] != "close"
            }
        }
    }
}
