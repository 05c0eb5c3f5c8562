package import Synchronization

/// A value that is replaced as a whole while threads use it, each by a copy of its own: settings, keys, certificates.
package final class Published<Value: Sendable>: Sendable {
    private let current: Locked<Value>
    @usableFromInline let number = Atomic<UInt64>(0)

    /// The first value; its number is 0.
    package init(_ value: Value) { current = Locked(value) }

    /// How often a value has been published. One atomic load tells a reader that nothing has changed.
    @inlinable package var epoch: UInt64 { number.load(ordering: .acquiring) }

    /// The value in force.
    package var value: Value { current.withLock { $0 } }

    /// Puts another value in force.
    package func publish(_ value: Value) {
        current.withLock { $0 = value }
        number.wrappingAdd(1, ordering: .releasing)
    }

    /// What one thread holds of it.
    package struct Copy {
        @usableFromInline let published: Published
        @usableFromInline let epoch: UInt64
        package let value: Value

        package init(_ published: Published) {
            self.published = published
            // The number first: a value published in between is taken again, never missed.
            epoch = published.epoch
            value = published.value
        }

        /// Whether another value has come into force since.
        @inlinable package var isOld: Bool { published.epoch != epoch }

        /// A copy of the value in force.
        package var renewed: Copy { Copy(published) }
    }
}
