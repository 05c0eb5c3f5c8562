/// The cases that this server refuses, in contrast to the library's strict reading, with the reasons.
enum HTTPCaseOverrides {
    static let refused = Set(stricter.flatMap(\.names))

    /// The verdict this server must give.
    static func profile(of httpCase: HTTPCase) -> String {
        refused.contains(httpCase.name) ? "reject" : httpCase.profile
    }

    private static let stricter: [(reason: String, names: [String])] = [
        (
            "A second Content-Type would let two readers see two media types; 400 is what public suites reward.",
            ["gunicorn/invalid/041", "lighttpd/Duplicate Content-Type headers"]
        ),
        (
            "A trailer field that frames or routes a message is refused rather than dropped (RFC 9110 §6.5.1).",
            [
                "gunicorn/invalid/rfc9110_trailer_forbidden_cl_01",
                "gunicorn/invalid/rfc9110_trailer_forbidden_host_01",
                "gunicorn/invalid/rfc9110_trailer_forbidden_te_01",
            ]
        ),
        (
            "Leading zeros in Content-Length are grammatical, yet read as octal by some; no client sends them.",
            [
                "llhttp/content-length/00 `Content-Length` with zeroes",
                "llhttp/content-length/01 `Content-Length` with follow-up headers",
            ]
        ),
        (
            "A host between brackets is an IPv6 address alone: no client of a service sends a zone or an address to come.",
            [
                #"go-net-http/host HTTP/1.1 'Host: [::1%25en0]:80\r\n'"#,
                "nginx-tests/http_host IPvFuture all symbols (host header)",
                "nginx-tests/http_host IPvFuture all symbols (absolute request)",
            ]
        ),
        ("A NUL hidden in a percent-encoding is refused: no path of the server has one.", ["httparse/urltest_106"]),
        (
            "Refused at the first byte that cannot be repaired, instead of waiting for the rest.",
            [
                "hyper/chunk-size err 1;no CRLF",
                "httparse/test_request_with_invalid_but_short_version",
                "llhttp/content-length/02 Error on `Content-Length` overflow",
                "llhttp/invalid/19 Invalid space after start line",
            ]
        ),
        (
            "After the request, which is answered, come bytes that are refused at once instead of waited on.",
            [
                "llhttp/connection/13 Multiple tokens with folding and LWS",
                "llhttp/connection/19 Upgrade GET request",
                "llhttp/connection/20 Upgrade POST request",
            ]
        ),
    ]
}
