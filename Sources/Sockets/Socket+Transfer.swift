internal import CSystemCalls

extension Socket {
    /// Receives what is there, at most `buffer.count` bytes, into the start of `buffer`.
    package func receive(into buffer: inout [UInt8]) throws(SocketError) -> Transfer {
        while true {
            // The system writes at most `count` bytes from the base address on, which is the whole array.
            let result = unsafe buffer.withUnsafeMutableBytes { bytes in
                unsafe platform_recv(descriptor.number, bytes.baseAddress, bytes.count)
            }
            if result > 0 { return .bytes(result) }
            if result == 0 { return .endOfStream }
            if result == -Int(ErrorNumber.interrupted) { continue }
            if result == -Int(ErrorNumber.again) { return .wouldBlock }
            throw SocketError(.receive, errorNumber: Int32(truncatingIfNeeded: -result))
        }
    }

    /// Sends from `bytes`, beginning at `offset` (0 … `bytes.count`); a peer that is gone is an error, never a signal.
    package func send(_ bytes: borrowing [UInt8], from offset: Int = 0) throws(SocketError) -> Transfer {
        guard offset >= 0, offset < bytes.count else { return .bytes(0) }
        while true {
            // 0 <= offset < count was checked above, so the rest of the array is what may be read.
            let result = unsafe bytes.withUnsafeBytes { all in
                unsafe platform_send(descriptor.number, all.baseAddress.map { unsafe $0 + offset }, all.count - offset)
            }
            if result >= 0 { return .bytes(result) }
            if result == -Int(ErrorNumber.interrupted) { continue }
            if result == -Int(ErrorNumber.again) { return .wouldBlock }
            throw SocketError(.send, errorNumber: Int32(truncatingIfNeeded: -result))
        }
    }
}
