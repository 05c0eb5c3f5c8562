import Testing

@testable import LLService

@Suite("traceparent")
struct TraceParentTests {
    static let traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
    static let good = "00-\(traceID)-00f067aa0ba902b7-01"

    private static func traceID(of text: String) -> String? {
        TraceParent.fields(of: text).map { String($0[1]) }
    }

    @Test(
        "A valid traceparent gives its trace id",
        arguments: [good, good.replacing("00-4", with: "01-4"), "cc\(good.dropFirst(2))-x"]
    )
    func valid(_ text: String) {
        #expect(Self.traceID(of: text) == Self.traceID)
    }

    @Test(
        "An invalid traceparent gives none",
        arguments: [
            "", "00", String(good.dropLast()), good + "0", good + "-", good + "-x", "ff\(good.dropFirst(2))",
            good.uppercased(), good.replacing("-", with: "_"), "0g\(good.dropFirst(2))",
            "00-\(String(repeating: "0", count: 32))-00f067aa0ba902b7-01", "00-\(traceID)-0000000000000000-01",
            "00-\(traceID)-00f067aa0ba902b7-0x", "00-\(traceID)-00f067aa0ba902b7--1", " \(good.dropLast())",
            "00-\(traceID)000f067aa0ba902b7-01", "01\(good.dropFirst(2))x",
            "00-\(traceID.dropLast())\u{0}-00f067aa0ba902b7-01",
        ]
    )
    func invalid(_ text: String) {
        #expect(Self.traceID(of: text) == nil)
    }
}
