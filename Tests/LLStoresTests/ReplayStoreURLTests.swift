import LLStores
import Testing

@Suite("The address of a store")
struct ReplayStoreURLTests {
    @Test("Scheme, user, password, host, port and database are read")
    func parts() throws {
        let plain = try ReplayStoreURL(parsing: "redis://cache.example")
        #expect(plain.host == "cache.example" && plain.port == 6_379 && plain.database == 0 && !plain.isSecure)
        #expect(plain.user.isEmpty && plain.password == nil)
        let full = try ReplayStoreURL(parsing: "rediss://svc:p%40ss%3Aw@[::1]:7000/15")
        #expect(full.host == "::1" && full.port == 7_000 && full.database == 15 && full.isSecure)
        #expect(full.user == Array("svc".utf8) && full.password == Array("p@ss:w".utf8))
        #expect(full.shown == "rediss://[::1]:7000/15")
        let passwordOnly = try ReplayStoreURL(parsing: "redis://:secret@10.0.0.1/")
        #expect(passwordOnly.user.isEmpty && passwordOnly.password == Array("secret".utf8))
        #expect(passwordOnly.shown == "redis://10.0.0.1:6379/0")
        #expect(try ReplayStoreURL(parsing: "REDIS://Host:443").port == 443)
        #expect(try ReplayStoreURL(parsing: "REDIS://Host").host == "host")
    }

    @Test(
        "What is no address is refused, and the reason does not repeat it",
        arguments: [
            "", "redis://", "redis:///0", "http://host", "memory", "redis:host", "redis://host/x", "redis://host/0/1",
            "redis://host/65536", "redis://host/-1", "redis://host/0?x=1", "redis://host:0", "redis://host:65536",
            "redis://host:x", "redis://ho st", "redis://host#x", "redis://us er@host", "redis://u:%zz@host",
            "redis://u:%4@host", "redis://a@b@", "redis://host/ 1", "redis://hunter2\u{0}@host", "redis://-x",
            "redis://host?db=1",
        ]
    )
    func refused(text: String) {
        let error = #expect(throws: ReplayStoreURL.ParsingError.self) { try ReplayStoreURL(parsing: text) }
        #expect(error?.description.contains("hunter2") == false)
        #expect((error == .query) == text.contains("?"))
    }
}
