/// The bracket of a person's age in years. At least one bound is there, and the lower is less than the upper.
public struct AgeRange: Equatable, Hashable, Sendable {
    /// The least age; nil when there is none.
    public let minimum: Int?
    /// The greatest age; nil when there is none.
    public let maximum: Int?

    /// A bracket; nil without any bound, with a negative one, and when the minimum is not less than the maximum.
    public init?(minimum: Int?, maximum: Int?) {
        guard minimum != nil || maximum != nil else { return nil }
        guard minimum ?? 0 >= 0, maximum ?? 0 >= 0 else { return nil }
        if let minimum, let maximum, minimum >= maximum { return nil }
        self.minimum = minimum
        self.maximum = maximum
    }
}
