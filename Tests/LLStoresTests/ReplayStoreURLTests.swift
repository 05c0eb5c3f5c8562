import LLStores
import Testing

@Suite("The address of a store")
struct ReplayStoreURLTests {
    @Test("Scheme, user, password, host, port and database are parsed")
    func parts() throws {
        let plain = try ReplayStoreURL(parsing: "redis://cache.example")
        #expect(plain.host == "cache.example" && plain.places[0].port == 6_379 && plain.database == 0)
        #expect(!plain.isSecure && plain.user.isEmpty && plain.password == nil)
        let full = try ReplayStoreURL(parsing: "rediss://svc:p%40ss%3Aw@[::1]:7000/15")
        #expect(full.host == "::1" && full.places[0].port == 7_000 && full.database == 15 && full.isSecure)
        #expect(full.user == Array("svc".utf8) && full.password == Array("p@ss:w".utf8))
        #expect(full.shown == "rediss://[::1]:7000/15")
        let passwordOnly = try ReplayStoreURL(parsing: "redis://:secret@10.0.0.1/")
        #expect(passwordOnly.user.isEmpty && passwordOnly.password == Array("secret".utf8))
        #expect(passwordOnly.shown == "redis://10.0.0.1:6379/0")
        #expect(try ReplayStoreURL(parsing: "REDIS://Host:443").places[0].port == 443)
        #expect(try ReplayStoreURL(parsing: "REDIS://Host").host == "host")
    }

    @Test("A Unix socket has a path, and its database in the query")
    func sockets() throws {
        let socket = try ReplayStoreURL(parsing: "redis+unix:///run/redis.sock?db=3")
        #expect(socket.host == "/run/redis.sock" && socket.database == 3 && socket.isLoopbackHost && !socket.isSecure)
        #expect(socket.shown == "redis+unix:///run/redis.sock?db=3")
        #expect(try ReplayStoreURL(parsing: "redis+unix:///a").database == 0)
        let long = String(repeating: "a", count: 108)
        for text in ["", "a", "host/a", "/a?db=", "/a?db=x", "/a?db=65536", "/a?database=1", "/a?db=1&x", "/\(long)"] {
            #expect(throws: ReplayStoreURL.ParsingError.socket) { try ReplayStoreURL(parsing: "redis+unix://\(text)") }
        }
    }

    @Test("A cluster's address has several places; that of sentinels also has the name of the master")
    func groups() throws {
        let cluster = try ReplayStoreURL(parsing: "rediss+cluster://u:p@h1,[::1]:7001,H3:7002")
        #expect(cluster.kind == .cluster && cluster.isSecure && cluster.database == 0)
        #expect(cluster.places.map(\.description) == ["h1:6379", "[::1]:7001", "h3:7002"])
        #expect(cluster.shown == "rediss+cluster://h1:6379,[::1]:7001,h3:7002")
        #expect(try ReplayStoreURL(parsing: "redis+cluster://h/0").shown == "redis+cluster://h:6379")
        let sentinels = try ReplayStoreURL(parsing: "redis+sentinel://:p@s1,s2:26380/my.master-1")
        #expect(sentinels.kind == .sentinel(master: "my.master-1") && !sentinels.isSecure)
        #expect(sentinels.shown == "redis+sentinel://s1:26379,s2:26380/my.master-1")
        #expect(sentinels.secureScheme == "rediss+sentinel://" && cluster.secureScheme == "rediss+cluster://")
        #expect(try !ReplayStoreURL(parsing: "redis+cluster://cache.example,127.0.0.1").isLoopbackHost)
        #expect(try ReplayStoreURL(parsing: "redis+cluster://[::1],127.0.0.1").isLoopbackHost)
    }

    @Test(
        "An invalid address is refused, and the reason does not repeat it",
        arguments: [
            "", "redis://", "redis:///0", "http://host", "memory", "redis:host", "redis://host/x", "redis://host/0/1",
            "redis://host/65536", "redis://host/-1", "redis://host/0?x=1", "redis://host:0", "redis://host:65536",
            "redis://host:x", "redis://ho st", "redis://host#x", "redis://us er@host", "redis://u:%zz@host",
            "redis://u:%4@host", "redis://a@b@", "redis://host/ 1", "redis://hunter2\u{0}@host", "redis://-x",
            "redis://host?db=1", "redis://a,b", "redis+cluster://", "redis+cluster://a,", "redis+cluster://a,,b",
            "redis+cluster://a/1", "redis+cluster://a/x", "redis+cluster://a;b", "redis+sentinel://a",
            "redis+sentinel://a/", "redis+sentinel://a/m/0", "redis+sentinel://a/m m", "redis+sentinel://a,b:x/m",
            "redis+sentinel://a/m?x=1", "redis+cluster+sentinel://a", "redis+cluster:a",
        ]
    )
    func refused(text: String) {
        let error = #expect(throws: ReplayStoreURL.ParsingError.self) { try ReplayStoreURL(parsing: text) }
        #expect(error?.description.contains("hunter2") == false)
        #expect((error == .query) == text.contains("?"))
    }

    @Test(
        "A reserved character in the user or password is told as such",
        arguments: [
            "redis://:p@ss:w/ord#1%@127.0.0.1:6379", "redis://:p/w@host",
            "redis://:p%w@host", "redis+sentinel://u:p@w@s1,s2/main/x", "redis+cluster://:p/w@h1,h2",
        ]
    )
    func reserved(text: String) {
        #expect(throws: ReplayStoreURL.ParsingError.userInformation) { try ReplayStoreURL(parsing: text) }
    }

    @Test("An address with more places than a search needs is refused")
    func manyPlaces() throws {
        let places = Array(repeating: "a", count: 16).joined(separator: ",")
        #expect(try ReplayStoreURL(parsing: "redis+cluster://\(places)").places.count == 16)
        let more = "redis+cluster://\(places),a"
        #expect(throws: ReplayStoreURL.ParsingError.places) { try ReplayStoreURL(parsing: more) }
    }
}
