internal import FoundationEssentials

/// Reads a moment as people write it on a command line.
enum Moment {
    /// Seconds since 1970 of `1700000000` or `2023-11-14T22:13:20Z`; nil for anything else.
    static func secondsSince1970(_ text: String) -> Double? {
        if let seconds = Double(text), seconds >= 0, seconds <= 9_007_199_254_740_992 { return seconds }
        return try? Date(text, strategy: Date.ISO8601FormatStyle()).timeIntervalSince1970
    }
}
