import LLHTTPServer
import LLTestSupport
import Testing

/// A fault of an issuer that should answer with a good key set, and a part of the sentence that reports it.
struct IssuerFault: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var manner: (@Sendable (TestCertificates) -> ScriptedIssuer.Manner)?
    var script: ScriptedIssuer.Script = { _, _ in }
    let sentence: String
    /// The fetch timeout: short if the issuer hangs, else long enough for a slow machine.
    var timeout = Duration.seconds(30)

    static func body(_ name: String, _ body: String, _ sentence: String) -> IssuerFault {
        IssuerFault(testDescription: name, script: { _, peer in try peer.answer(body) }, sentence: sentence)
    }

    static func status(_ status: String, fields: [String] = []) -> IssuerFault {
        IssuerFault(
            testDescription: status,
            script: { _, peer in try peer.answer(status: status, fields: fields, "{\"keys\":[]}") },
            sentence: "the source answered \(status.prefix(3))"
        )
    }

    static func certificate(
        _ name: String,
        _ identity: @escaping @Sendable (TestCertificates) -> TestCertificates.Identity,
        _ sentence: String
    ) -> IssuerFault {
        IssuerFault(testDescription: name, manner: { .tls(identity($0)) }, sentence: sentence)
    }

    static func redirect(_ name: String, to location: String, _ sentence: String) -> IssuerFault {
        IssuerFault(
            testDescription: name,
            script: { _, peer in try peer.answer(status: "302 Found", fields: ["Location: \(location)"], "") },
            sentence: sentence
        )
    }

    static let all: [IssuerFault] = statuses + bodies + streams + redirects + certificates

    static let statuses: [IssuerFault] = [
        .status("500 Internal Server Error"), .status("429 Too Many Requests", fields: ["Retry-After: 120"]),
        .status("404 Not Found"), .status("403 Forbidden"), .status("206 Partial Content"),
        .status("304 Not Modified"), .status("204 No Content"),
    ]

    static let bodies: [IssuerFault] = [
        .body("HTML with 200", "<!doctype html><title>Error</title>", "not JSON"),
        .body("an empty set", "{\"keys\":[]}", "no usable key"),
        .body("an empty object", "{}", "no JWK Set"),
        .body("wrong types", "{\"keys\":\"none\"}", "no JWK Set"),
        .body("an empty body", "", "not JSON"),
        .body("a truncated set", String(decoding: TestKeySet.json(["a"]).dropLast(9), as: UTF8.self), "not JSON"),
        .body(
            "10,000 keys",
            "{\"keys\":[" + Array(repeating: "{}", count: 10_000).joined(separator: ",") + "]}",
            "more than 64 keys"
        ),
        .body(
            "a modulus of 16,384 bits",
            "{\"keys\":[{\"kid\":\"a\",\"kty\":\"RSA\",\"n\":\"\(String(repeating: "_", count: 2731))\",\"e\":\"AQAB\"}]}",
            "no usable key"
        ),
        .body(
            "an exponent of 1",
            String(decoding: TestKeySet.json(["a"]), as: UTF8.self).split(separator: "AQAB").joined(separator: "AQ"),
            "no usable key"
        ),
    ]

    static let streams: [IssuerFault] = [
        IssuerFault(testDescription: "a reset", manner: { _ in .resetting }, sentence: "Connection reset by peer"),
        IssuerFault(testDescription: "no answer", sentence: "closed before the answer was whole"),
        IssuerFault(
            testDescription: "a body cut short",
            script: { _, peer in try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"keys\":[") },
            sentence: "closed before the answer was whole"
        ),
        IssuerFault(
            testDescription: "a hang in the handshake",
            manner: { _ in .silent },
            sentence: "the time ran out",
            timeout: .milliseconds(500)
        ),
        IssuerFault(
            testDescription: "a hang after connect",
            script: { _, peer in peer.waitUntilClosed() },
            sentence: "the time ran out",
            timeout: .milliseconds(500)
        ),
        IssuerFault(
            testDescription: "a slow drip",
            script: { _, peer in
                try peer.drip(
                    "HTTP/1.1 200 OK\r\n\r\n" + String(repeating: " ", count: 9999),
                    every: .milliseconds(20)
                )
            },
            sentence: "the time ran out",
            timeout: .milliseconds(500)
        ),
        IssuerFault(
            testDescription: "a 1 GB body",
            script: { _, peer in
                try peer.repeatPiece(
                    [UInt8](repeating: 0x20, count: 65_536),
                    head: "HTTP/1.1 200 OK\r\n\r\n",
                    total: 1 << 30
                )
            },
            sentence: "larger than 65,536 bytes"
        ),
        IssuerFault(
            testDescription: "endless chunks",
            script: { _, peer in
                try peer.repeatPiece(
                    Array("2000\r\n".utf8) + [UInt8](repeating: 0x20, count: 8192) + Array("\r\n".utf8),
                    head: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                    total: 1 << 30
                )
            },
            sentence: "larger than 65,536 bytes"
        ),
    ]

    static let redirects: [IssuerFault] = [
        .redirect("a redirect loop", to: "/keys", "more than 3 in a row"),
        .redirect("a redirect to another host", to: "https://elsewhere.example/keys", "another host"),
        .redirect("a redirect to http", to: "http://localhost/keys", "from https to http"),
    ]

    static let certificates: [IssuerFault] = [
        .certificate("a wrong name", { $0.wrongName }, "host name mismatch"),
        .certificate("an expired certificate", { $0.expired }, "certificate has expired"),
        .certificate("a self-signed certificate", { $0.selfSigned }, "self-signed certificate"),
        .certificate("an unknown authority", { $0.untrusted }, "not issued by a trusted authority"),
    ]
}
