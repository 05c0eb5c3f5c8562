extension Duration {
    /// For logs: seconds with three decimals, `52.566s`; what is finer says nothing to a reader.
    var inSeconds: String {
        let (seconds, attoseconds) = components
        let milliseconds = String((attoseconds / 1_000_000_000_000_000).magnitude)
        let zeros = String(repeating: "0", count: max(0, 3 - milliseconds.utf8.count))
        return "\(self < .zero ? "-" : "")\(seconds.magnitude).\(zeros)\(milliseconds)s"
    }
}
