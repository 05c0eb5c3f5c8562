import Testing

@testable import LLService

@Suite("Basic credentials")
struct BasicCredentialsTests {
    private func decode(_ text: String) -> [String]? {
        let bytes = Array("Basic \(text)".utf8)
        guard let decoded = CallerCredentials.decodeBasic(bytes.span, 6..<bytes.count) else { return nil }
        return [decoded.name, decoded.key].map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(
        "The first colon separates the name from the key",
        arguments: [
            ("YTpi", ["a", "b"]), ("YTo=", ["a", ""]), ("OmI=", ["", "b"]), ("Og==", ["", ""]),
            ("YTpiOmM=", ["a", "b:c"]), ("YTo+Pz4/", ["a", ">?>?"]),
        ]
    )
    func accepted(text: String, credentials: [String]) {
        #expect(decode(text) == credentials)
    }

    @Test(
        "Text that is not strict base64, or has no colon, is refused",
        arguments: [
            "", "=", "====", "Og", "Og=", "Og===", "Oh==", "YTp", "YTp=", "YTo=YTo=", "Y=o=", "YQ==", "YTo-Pz4_",
            "YT i",
            "YTpi\n", "YTo*", String(repeating: "YTpi", count: 513),
        ]
    )
    func refused(text: String) {
        #expect(decode(text) == nil)
    }
}
