import LimitedLogin
import Testing

@Suite("The URI of a request")
struct TargetURITests {
    private static func normalized(_ text: String) -> String? {
        TargetURI(Array(text.utf8).span).map { String(decoding: $0.normalized, as: UTF8.self) }
    }

    @Test(
        "Each URI has one normalized spelling (RFC 3986 sections 6.2.2 and 6.2.3)",
        arguments: [
            ("http://a", "http://a/"), ("http://a:80", "http://a/"), ("http://a:443/", "http://a:443/"),
            ("https://a:80/", "https://a:80/"), ("https://A:0443/x", nil), ("https://a?x", "https://a/"),
            ("https://a#/../x", "https://a/"), ("https://[2001:DB8::1]:443/x", "https://[2001:db8::1]/x"),
            ("https://[::1]:8443/x", "https://[::1]:8443/x"), ("https://a/%7Eb/%e4%2f%41", "https://a/~b/%E4%2FA"),
            ("https://a/b/../../c", "https://a/c"), ("https://a/b/..", "https://a/"), ("https://a/b/.", "https://a/b/"),
            ("https://a/..", "https://a/"), ("https://a//b//", "https://a//b//"),
            ("https://a/b/%2E%2e/c", "https://a/c"), ("https://a/...", "https://a/..."), ("https://a:/", "https://a/"),
        ] as [(String, String?)]
    )
    func spellings(text: String, normalized: String?) {
        #expect(Self.normalized(text) == normalized)
    }

    @Test(
        "Text that is no http URL with a host is refused",
        arguments: [
            "", "https", "https:", "https://", "https:///x", "https://?x", "ftp://a/", "//a/", "/x", "a", "https:/a",
            "https://a b/", "https://a/\u{E9}", "https://a/%", "https://a/%4", "https://a/%zz", "https://u@a/",
            "https://u:p@a/", "https://a:x/", "https://a:65536/", "https://a:-1/", "https://[::1/", "https://[::1]x/",
            "https://:443/", "https://a%2Eb/", "https://a/\n", "https://a/\0", " https://a/",
        ]
    )
    func refused(text: String) {
        #expect(Self.normalized(text) == nil)
    }

    private static func uri(_ scheme: String, _ authority: String, _ target: String) -> String? {
        TargetURI(
            scheme: Array(scheme.utf8).span,
            authority: Array(authority.utf8).span,
            target: Array(target.utf8).span
        ).map { String(decoding: $0.normalized, as: UTF8.self) }
    }

    @Test(
        "Query and fragment are ignored, whatever their length and content",
        arguments: [
            "?", "#", "?q=Ж", "?a b", "?%zz", "#Ж", "?" + String(repeating: "x", count: 20_000), "?x#y", "?/../y",
            "#?@:",
        ]
    )
    func query(rest: String) {
        #expect(Self.uri("https", "a", "/x" + rest) == "https://a/x")
        #expect(Self.normalized("https://a/x" + rest) == "https://a/x")
        #expect(Self.normalized("https://a" + rest) == "https://a/")
    }

    @Test("A request's parts make its URI, and no part can hold another")
    func parts() {
        let uri = Self.uri
        #expect(uri("https", "API.example.com:443", "/x?y=1") == "https://api.example.com/x")
        #expect(uri("https", "a/x", "/y") == nil && uri("https", "a?", "/y") == nil && uri("https", "a", "*") == nil)
        #expect(uri("https", "a", "") == nil && uri("https://evil/", "a", "/y") == nil && uri("", "a", "/") == nil)
        #expect(uri("https", "a", "/" + String(repeating: "x", count: 8_192)) == nil)
    }
}
