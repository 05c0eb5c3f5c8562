import LLTestSupport
import Testing

/// A fault of an issuer that should answer with a good key set, and a part of the sentence that reports it. The faults of
/// a connection and of a set's bytes have tables of their own: here is one of each kind.
struct IssuerFault: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var manner: (@Sendable (TestCertificates) -> ScriptedIssuer.Manner)?
    var script: ScriptedIssuer.Script = { _, _ in }
    let sentence: String
    /// The fetch timeout: short if the issuer hangs, else long enough for a slow machine.
    var timeout = Duration.seconds(30)

    private static func answer(_ status: String, _ field: String = "X: y", _ sentence: String? = nil) -> IssuerFault {
        IssuerFault(
            testDescription: status,
            script: { _, peer in try peer.answer(status: status, fields: [field], "{\"keys\":[]}") },
            sentence: sentence ?? "the source answered \(status.prefix(3))"
        )
    }

    static let all: [IssuerFault] = [
        answer("500 Internal Server Error"), answer("429 Too Many Requests", "Retry-After: 120"),
        answer("404 Not Found"), answer("206 Partial Content"), answer("304 Not Modified"), answer("204 No Content"),
        answer("200 OK", "X: y", "no usable key"), answer("302 Found", "Location: /keys", "more than 3 in a row"),
        IssuerFault(testDescription: "a reset", manner: { _ in .resetting }, sentence: "Connection reset by peer"),
        IssuerFault(
            testDescription: "a hang after connect",
            script: { _, peer in peer.waitUntilClosed() },
            sentence: "the time ran out",
            timeout: .milliseconds(500)
        ),
        IssuerFault(
            testDescription: "an expired certificate",
            manner: { .tls($0.expired) },
            sentence: "certificate has expired"
        ),
    ]
}
