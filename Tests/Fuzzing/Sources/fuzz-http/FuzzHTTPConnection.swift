import LLTestSupport

@testable import LLHTTP

/// Feeds any bytes in any pieces to the connection machine, with time passing, a slow reader, wakes and the peer's end
/// in between. It must not crash, each connection waits for something or is closed, and memory is bounded.
func fuzzConnection(_ input: [UInt8]) {
    guard let script = input.first else { return }
    let bytes = Array(input.dropFirst())
    let plain = run(bytes, pieces: max(bytes.count, 1))
    let single = run(bytes, pieces: 1)
    guard plain == single else { fatalError("the answers depend on the splits") }
    disturb(bytes, script)
}

/// The final responses to the bytes, followed by the peer's end.
private func run(_ bytes: [UInt8], pieces: Int) -> [UInt8] {
    let driver = ConnectionDriver()
    for start in stride(from: 0, to: bytes.count, by: pieces) {
        driver.send(Array(bytes[start..<min(start + pieces, bytes.count)]))
    }
    expireParked(driver)
    driver.endInput()
    check(driver)
    return driver.finalBytes
}

private func disturb(_ bytes: [UInt8], _ script: UInt8) {
    let driver = ConnectionDriver()
    if script & 1 != 0 { driver.room = 100 }
    let step = Int(script >> 4) + 1
    for (number, start) in stride(from: 0, to: bytes.count, by: step).enumerated() {
        if driver.connection.isWriting { driver.drain(50) }
        if !driver.connection.isWriting { driver.send(Array(bytes[start..<min(start + step, bytes.count)])) }
        if script & 2 != 0, number % 7 == 0 { driver.advance(by: .milliseconds(700)) }
        if script & 4 != 0, number % 5 == 0, driver.closed == nil { driver.wake() }
        check(driver)
    }
    driver.room = nil
    driver.drain(0)
    if script & 8 != 0 { driver.endInput() }
    expireParked(driver)
    driver.advance(by: .seconds(200))
    if driver.closed == nil { fatalError("a connection outlives every deadline: \(driver.connection.phase)") }
}

/// Lets the time of parked requests run out, 600 s by `TestHandler.probe`. The bytes behind each are read after that.
private func expireParked(_ driver: ConnectionDriver) {
    while driver.closed == nil, driver.connection.phase == .parked { driver.advance(by: .seconds(600)) }
}

private func check(_ driver: ConnectionDriver) {
    if driver.closed == nil, driver.connection.deadline == .never, !driver.connection.isWriting {
        fatalError("nothing will ever happen: \(driver.connection.phase)")
    }
    if driver.connection.heldBytes > 100_000 { fatalError("more is kept than one request needs") }
}
