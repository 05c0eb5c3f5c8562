/// A dictionary that keeps its newest entries: beyond ``limit`` the oldest goes, so that a stand-in that mints for days
/// holds no more.
struct NewestEntries<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// 20,000: more people and tokens than a test uses at a time, in some 20 MB.
    static var limit: Int { 20_000 }

    private(set) var values: [Key: Value] = [:]
    /// The keys in the order in which they came; at the limit the next one takes the place of the oldest.
    private var order: [Key] = []
    private var oldest = 0

    /// The value of a key; to set nil changes nothing.
    subscript(key: Key) -> Value? {
        get { values[key] }
        set {
            guard let newValue, values.updateValue(newValue, forKey: key) == nil else { return }
            guard order.count == Self.limit else { return order.append(key) }
            values[order[oldest]] = nil
            order[oldest] = key
            oldest = (oldest + 1) % Self.limit
        }
    }
}
