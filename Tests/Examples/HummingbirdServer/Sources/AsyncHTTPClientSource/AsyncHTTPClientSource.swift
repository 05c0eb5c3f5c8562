import AsyncHTTPClient
import LimitedLoginKeys

// snippet: source
struct AsyncHTTPClientSource: JWKSetSource {
    let name: String
    // A redirect could lead to another host's keys.
    private static let client = HTTPClient(
        eventLoopGroupProvider: .singleton,
        configuration: .init(redirectConfiguration: .disallow)
    )

    func fetch(validator: String?) async throws(JWKSetSourceError) -> JWKSetAnswer {
        do {
            var request = HTTPClientRequest(url: name)
            if let validator { request.headers.add(name: "If-None-Match", value: validator) }
            let response = try await Self.client.execute(request, timeout: .seconds(10))
            if response.status == .notModified { return .notModified(JWKSetFreshness()) }
            guard response.status == .ok else { throw JWKSetSourceError("the source answered \(response.status.code)") }
            let body = try await response.body.collect(upTo: 65_536)
            return .fetched(
                JWKSetDocument(bytes: Array(body.readableBytesView), validator: response.headers.first(name: "ETag"))
            )
        } catch {
            throw error as? JWKSetSourceError ?? JWKSetSourceError("the fetch failed: \(error)")
        }
    }
}
// end
