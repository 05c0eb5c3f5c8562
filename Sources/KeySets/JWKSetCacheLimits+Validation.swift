extension JWKSetCacheLimits {
    /// Refuses limits that contradict each other or that no cache could keep.
    public func validate() throws(JWKSetCacheError) {
        try Self.check(minimumTimeToLive >= .seconds(1), "the minimum time to live is below one second")
        try Self.check(minimumTimeToLive <= maximumTimeToLive, "the minimum time to live exceeds the maximum")
        try Self.check(
            timeToLive >= minimumTimeToLive && timeToLive <= maximumTimeToLive,
            "the time to live lies outside its minimum and maximum"
        )
        try Self.check(maximumTimeToLive <= .seconds(366 * 86_400), "the maximum time to live exceeds a year")
        try Self.check(
            maximumStaleness >= .zero && maximumStaleness <= .seconds(366 * 86_400),
            "the maximum staleness is negative or exceeds a year"
        )
        // Above a half, jitter could put the refresh before the fetch.
        try Self.check(
            refreshAheadFraction >= 0 && refreshAheadFraction <= 0.5,
            "the refresh-ahead fraction lies outside 0 … 0.5"
        )
        try Self.check(waitForFetch >= .zero, "the wait for a fetch is negative")
        try Self.check(unknownKeyIDBurst >= 1, "the burst of refetches is below 1")
        try Self.check(unknownKeyIDInterval > .zero, "the interval of refetches is not above zero")
        try Self.check((4...1_000_000).contains(negativeEntryCount), "the negative entries lie outside 4 … 1000000")
        try Self.check(
            negativeLifetime >= .zero && joinedNegativeLifetime >= .zero,
            "a negative lifetime is below zero"
        )
        try Self.check(minimumBackOff > .zero, "the minimum back-off is not above zero")
        try Self.check(minimumBackOff <= maximumBackOff, "the minimum back-off exceeds the maximum")
        try Self.check(maximumBackOff <= .seconds(86_400), "the maximum back-off exceeds a day")
        try Self.check(keySetBytes >= 1, "the size of a key set is below 1 byte")
    }

    private static func check(_ holds: Bool, _ reason: String) throws(JWKSetCacheError) {
        if !holds { throw .invalidLimits(reason) }
    }
}
