internal import Dispatch
package import LLHTTP

/// Clients that send one request over and over, each on its own thread, until the server is gone.
package final class RequestLoad: Sendable {
    package struct Counts: Sendable {
        /// The number of answered requests.
        package var answered = 0
        /// The answered requests with another status than 200.
        package var refused = 0
        /// The requests that were sent on an open connection and not answered.
        package var unanswered = 0
    }

    private let address: ListenAddress
    private let request: String
    private let group = DispatchGroup()
    private let current = Locked(Counts())

    package init(_ address: ListenAddress, request: String) {
        self.address = address
        self.request = request
    }

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

    /// Waits until the server is gone, and returns the counts.
    package func end() -> Counts {
        group.wait()
        return current.withLock { $0 }
    }

    private func run(keepsConnection: Bool) {
        while let client = try? BlockingClient(address) {
            var isOpen = true
            while isOpen {
                let response = client.exchange(request)
                current.withLock { counts in
                    counts.answered += response == nil ? 0 : 1
                    counts.refused += [nil, 200].contains(response?.status) ? 0 : 1
                    counts.unanswered += response == nil ? 1 : 0
                }
                isOpen = response.map { keepsConnection && $0["connection"] != "close" } ?? false
            }
        }
    }
}
