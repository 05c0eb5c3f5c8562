internal import Dispatch
package import LLHTTP
internal import Synchronization

/// Clients that send one request over and over, each on its own thread, until the server is gone.
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

    /// The number of answered requests.
    package var answered: Int { answeredCount.load(ordering: .relaxed) }
    /// The answered requests with another status than 200. Requests shed by a busy server (503 `overloaded`) do not
    /// count.
    package var refused: Int { refusedCount.load(ordering: .relaxed) }
    /// The requests that were sent on an open connection and not answered.
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

    /// Returns false if fewer than `count` answers come within a minute.
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
