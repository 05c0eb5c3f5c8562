package import Synchronization

/// A value that is replaced as a whole while threads use it, each with its own copy: settings, keys, certificates.
package final class Published<Value: Sendable>: Sendable {
    private let current: Locked<Value>
    @usableFromInline let number = Atomic<UInt64>(0)

    /// The first value; its number is 0.
    package init(_ value: Value) { current = Locked(value) }

    /// The number of values published so far. One atomic load tells a reader that nothing has changed.
    @inlinable package var epoch: UInt64 { number.load(ordering: .acquiring) }

    package var value: Value { current.withLock { $0 } }

    package func publish(_ value: Value) {
        current.withLock { $0 = value }
        number.wrappingAdd(1, ordering: .releasing)
    }

    /// One thread's copy of the value.
    package struct Copy {
        @usableFromInline let published: Published
        @usableFromInline let epoch: UInt64
        package let value: Value

        package init(_ published: Published) {
            self.published = published
            // Read the epoch first: a publish in between only causes a second refresh.
            epoch = published.epoch
            value = published.value
        }

        /// True if another value has been published since.
        @inlinable package var isOld: Bool { published.epoch != epoch }

        /// A copy of the current value.
        package var renewed: Copy { Copy(published) }
    }
}
