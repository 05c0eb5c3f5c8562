internal import CHiredis

/// Writes commands of the Redis protocol, with hiredis.
package enum RedisCommand {
    /// Appends one command: its name and its arguments, each any bytes.
    /// - Returns: False without memory; then nothing was appended.
    package static func append(_ words: [[UInt8]], to output: inout [UInt8]) -> Bool {
        var command: UnsafeMutablePointer<CChar>?
        // All words one behind another, and where each begins: hiredis wants a pointer to each.
        let joined = words.flatMap { $0 }
        let count = unsafe joined.withUnsafeBytes { bytes -> Int32 in
            let empty: StaticString = ""
            let base = unsafe bytes.baseAddress ?? UnsafeRawPointer(empty.utf8Start)
            var lengths: [Int] = []
            var pointers = unsafe [UnsafePointer<CChar>?]()
            var offset = 0
            for word in words {
                // `offset` is the sum of the lengths before, at most the length of all.
                unsafe pointers.append((base + offset).assumingMemoryBound(to: CChar.self))
                lengths.append(word.count)
                offset += word.count
            }
            // As many pointers and lengths as `words.count` says; each pointer has its length's bytes.
            return unsafe redisFormatCommandArgv(&command, Int32(clamping: words.count), &pointers, lengths)
        }
        guard count > 0, let command = unsafe command else { return false }
        defer { unsafe redisFreeCommand(command) }
        unsafe UnsafeBufferPointer(start: command, count: Int(count)).forEach { output.append(UInt8(bitPattern: $0)) }
        return true
    }

    /// As above, from text.
    package static func append(_ words: [String], to output: inout [UInt8]) -> Bool {
        append(words.map { Array($0.utf8) }, to: &output)
    }
}
