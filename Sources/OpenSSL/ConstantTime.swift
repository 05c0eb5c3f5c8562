internal import COpenSSL

/// Comparison whose running time depends on the lengths alone, never on where two values first differ.
package enum ConstantTime {
    /// Whether two byte strings are equal. Their lengths are not secret.
    package static func areEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        guard left.count == right.count else { return false }
        return unsafe left.withUnsafeBufferPointer { leftBytes in
            unsafe right.withUnsafeBufferPointer { rightBytes in
                // An empty span may have no base address; two empty strings are equal.
                guard let leftBase = leftBytes.baseAddress, let rightBase = rightBytes.baseAddress else {
                    return true
                }
                // Both buffers hold `count` bytes: the lengths were compared above.
                return unsafe CRYPTO_memcmp(leftBase, rightBase, leftBytes.count) == 0
            }
        }
    }
}
