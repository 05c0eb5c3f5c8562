extension ServiceConfiguration {
    /// What is accepted but hardly meant, a sentence each: refusing it would lock people out where it is meant.
    package var doubts: [String] {
        guard let odd = appIDs.first(where: { !Self.isDecimal($0) }) else { return [] }
        return ["The app id '\(odd)' is no decimal number, as Facebook's are: no token of Facebook's is for it."]
    }

    private static func isDecimal(_ text: String) -> Bool {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
