import LLHTTP
import LLTestSupport
import Testing

@Suite("The lifetime of a client's certificate, with a clock that the test moves")
struct CertificateAgeTests {
    private static func driver(_ idleSeconds: Int64) -> ConnectionDriver {
        var limits = HTTPServerLimits()
        limits.idleTimeout = .seconds(idleSeconds)
        return ConnectionDriver(limits: limits)
    }

    /// The times in seconds at which a client sends requests; it showed a certificate when it connected.
    static let visits: [String: [Int64]] = [
        "each second": Array(1...400),
        "when nearly idle for too long": Array(stride(from: 59, through: 400, by: 59)),
        "at the last moment": [55, 110, 165, 220, 275, 297, 352],
        "just before the last answer that keeps the connection": [59, 118, 177, 224, 283, 342],
        "late": [59, 118, 177, 224, 284, 301],
    ]

    @Test(
        "A client's certificate holds for five minutes; after that no request is answered and the connection ends",
        arguments: visits.keys.sorted(),
        [false, true]
    )
    func certificateAge(_ name: String, _ beginsTheNext: Bool) throws {
        let visits = try #require(Self.visits[name])
        for idleSeconds in [60, 75, 240] as [Int64] {
            let driver = Self.driver(idleSeconds)
            driver.connection.secured(clientIsVerified: true, driver.host)
            let start = driver.now
            var last = start
            for second in visits {
                driver.advance(by: (start + .seconds(second)).duration(since: driver.now))
                let count = driver.received.count
                driver.send(beginsTheNext ? plainGet + "\r\n" : plainGet)
                if driver.received.count > count { last = driver.now }
            }
            #expect(driver.statuses.allSatisfy { $0 == 200 } && last <= start + .seconds(300))
            #expect(driver.writeIsShut || driver.closed == .idle)
            driver.advance(by: (start + .seconds(310)).duration(since: driver.now))
            #expect(driver.closed != nil)
        }
    }

    @Test(
        "A client that takes the longest allowed time for bodies and a last request still has only five minutes",
        arguments: [(24_900, 6), (25_100, 5), (29_900, 5)] as [(Int64, Int)]
    )
    func slowestRequest(_ milliseconds: Int64, _ answers: Int) {
        let driver = Self.driver(60)
        driver.connection.secured(clientIsVerified: true, driver.host)
        let start = driver.now
        var last = start
        let head = " / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"
        let pieces = [
            (50_000, plainGet), (50_000, plainGet), (50_000, plainGet), (50_000, plainGet),
            (milliseconds, "OPTIONS" + head), (4_900, "x"), (59_900, "P"), (4_900, "OST" + head), (4_900, "x"),
        ]
        for (milliseconds, piece) in pieces {
            let count = driver.statuses.count
            driver.advance(by: .milliseconds(milliseconds))
            driver.send(piece)
            if driver.statuses.count > count { last = driver.now }
        }
        #expect(driver.statuses.count == answers && driver.writeIsShut)
        #expect(last <= start + .seconds(300))
    }

    @Test("A client that reads slowly does not extend its certificate's time", arguments: ["", "GET / HTTP/1.1\r\n"])
    func certificateAgeOfSlowReader(_ begun: String) {
        var limits = HTTPServerLimits()
        limits.http.bodyBytes = 100_000
        limits.requestBytes = 200_000
        limits.idleTimeout = .seconds(60)
        let driver = ConnectionDriver(limits: limits)
        driver.connection.secured(clientIsVerified: true, driver.host)
        for _ in 0..<4 {
            driver.advance(by: .seconds(56))
            driver.send(plainGet)
        }
        driver.room = 0
        let body = String(repeating: "x", count: 90_000)
        driver.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n" + body + begun)
        for _ in 0..<19 {
            driver.advance(by: .seconds(4))
            driver.drain(4_096)
        }
        driver.drain(100_000)
        driver.send(String(plainGet.dropFirst(begun.count)))
        #expect(driver.statuses.count == 5)
        #expect(driver.closed == .idle)
    }

    @Test("A connection without a client's certificate has no limit of five minutes")
    func noCertificateAge() {
        let driver = ConnectionDriver()
        driver.connection.secured(clientIsVerified: false, driver.host)
        for _ in 0..<10 {
            driver.advance(by: .seconds(59))
            driver.send(plainGet)
        }
        #expect(driver.statuses.count == 10)
        #expect(driver.responses.last?["connection"] == nil)
    }
}
