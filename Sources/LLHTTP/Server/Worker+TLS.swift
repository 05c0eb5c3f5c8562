internal import CLLSystem

extension Worker {
    /// The first byte has come: the handshake begins, or waits with its bytes in the socket. Those of a peer over its share wait
    /// in a list of their own, so that one peer's many handshakes do not delay other peers.
    private mutating func requestHandshake(_ connection: Connection) {
        let isOverShare = isOverShare(table.countOfPeer(connection))
        let list = isOverShare ? ConnectionTable.List.overShareWaiting : .waiting
        guard table.count(of: list) == 0, mayBeginHandshake(waitingIn: list) else {
            connection.phase = .waiting
            table.move(connection, to: list)
            return updateInterest(connection)
        }
        beginHandshake(connection, overShare: isOverShare)
    }

    private func mayBeginHandshake(waitingIn list: ConnectionTable.List) -> Bool {
        let overShare = table.count(of: .overShareHandshaking)
        guard overShare + table.count(of: .handshaking) < limits.handshakes else { return false }
        return list == .waiting || overShare < limits.overShareHandshakes
    }

    private mutating func beginHandshake(_ connection: Connection, overShare: Bool) {
        if let held = tls, held.isOld { tls = held.renewed }
        guard let context = tls?.value,
            let made = try? TLSConnection(server: context, descriptor: connection.descriptor)
        else { return close(connection, .failed) }
        connection.tls = made
        connection.phase = .handshaking
        connection.busySince = now
        table.move(connection, to: overShare ? .overShareHandshaking : .handshaking)
        host.account(connection)
        continueHandshake(connection)
    }

    /// Begins waiting handshakes, oldest first, if others have ended or take too long. The events of the last poll have
    /// been handled before, however long that took.
    mutating func beginWaitingHandshakes() {
        // A handshake of a peer over its share comes first if no other such one is in progress: many of other peers
        // would otherwise delay it without end.
        if table.count(of: .overShareHandshaking) == 0 { _ = beginWaitingHandshake(in: .overShareWaiting) }
        for list in [ConnectionTable.List.waiting, .overShareWaiting] {
            while beginWaitingHandshake(in: list) {}
        }
    }

    /// - Returns: False if none waits in this list, or if no handshake can make room for it.
    private mutating func beginWaitingHandshake(in list: ConnectionTable.List) -> Bool {
        guard let next = table.oldest(in: list) else { return false }
        while !mayBeginHandshake(waitingIn: list) {
            guard let slow = handshakeInTheWay(of: list), isSlow(slow) else { return false }
            close(slow, .handshake)
        }
        beginHandshake(next, overShare: list == .overShareWaiting)
        return true
    }

    /// The handshake that makes room for one waiting in this list, once it is slow: one of a peer over its share before
    /// another one. For such a peer another one makes room only if no handshake of such a peer is in progress.
    private func handshakeInTheWay(of list: ConnectionTable.List) -> Connection? {
        let overShare = table.oldest(in: .overShareHandshaking)
        let other = table.oldest(in: .handshaking)
        guard let overShare, let other else { return overShare ?? other }
        return list == .overShareWaiting || isSlow(overShare) || overShare.busySince <= other.busySince
            ? overShare : other
    }

    func isSlow(_ handshake: Connection) -> Bool { handshake.busySince + limits.slowHandshakeAge <= polledAt }

    /// The moment at which a handshake must make room for a waiting one.
    func nextHandshakeTurn() -> MonotonicInstant {
        let waiting = [ConnectionTable.List.waiting, .overShareWaiting].filter { table.count(of: $0) > 0 }
        let slow = waiting.compactMap { handshakeInTheWay(of: $0)?.busySince }.min()
        return slow.map { $0 + limits.slowHandshakeAge } ?? .never
    }

    /// Handles the events that TLS itself waits for, before those of the connection.
    /// - Returns: False if the event is the connection's own.
    mutating func handleTLS(_ connection: Connection) -> Bool {
        if connection.isHandshaking {
            switch connection.phase {
            case .silent: requestHandshake(connection)
            // The handshake has not begun, and the client has disconnected.
            case .waiting: close(connection, .handshake)
            default: continueHandshake(connection)
            }
            return true
        }
        guard connection.tlsInterest != nil else { return false }
        connection.tlsInterest = nil
        if connection.isWriting { resumeSending(connection) } else { receive(connection) }
        if connection.slot >= 0 { updateInterest(connection) }
        return true
    }

    /// OpenSSL's reasons for first bytes that are no record of TLS.
    private static let reasonsOfNoTLS = ["http request", "https proxy request", "wrong version number"]
    private static let answerToNoTLS: StaticString =
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 33\r\nConnection: close\r\n\r\nThis port speaks TLS: use https.\n"

    private mutating func continueHandshake(_ connection: Connection) {
        guard let tls = connection.tls else { return }
        do throws(TLSError) {
            guard let wanted = try tls.handshake() else {
                connection.tlsInterest = nil
                connection.secured(clientIsVerified: tls.verifiesClient, host)
                return flush(connection)
            }
            connection.tlsInterest = wanted == .wantWrite ? .outputSpace : .input
            updateInterest(connection)
        } catch {
            if case .protocolFailure(let reason) = error, Self.reasonsOfNoTLS.contains(reason) {
                host.handler.didReceiveNoTLS(at: now)
                host.output.append(Self.answerToNoTLS)
            }
            // The alert with the reason is being sent; a close with unread bytes would cause a reset that overtakes it.
            endTLS(connection)
            if case .system = error { return close(connection, .handshake) }
            connection.close(.handshake)
            flush(connection)
        }
    }

    func receiveTLS(_ connection: Connection, into buffer: inout [UInt8], atMost most: Int) -> Socket.Transfer {
        transfer(connection, .wantRead) { tls throws(TLSError) in try tls.read(into: &buffer, atMost: most) }
    }

    func sendTLS(_ connection: Connection, _ bytes: [UInt8], from offset: Int) -> Socket.Transfer {
        transfer(connection, .wantWrite) { tls throws(TLSError) in try tls.write(bytes, from: offset) }
    }

    /// - Parameter usual: The event that the connection itself waits for if nothing can be transferred now.
    private func transfer(
        _ connection: Connection,
        _ usual: Socket.Transfer,
        _ call: (TLSConnection) throws(TLSError) -> Socket.Transfer
    ) -> Socket.Transfer {
        guard let tls = connection.tls else { return .bytes(0) }
        do throws(TLSError) {
            let result = try call(tls)
            if result != usual, [.wantRead, .wantWrite].contains(result) {
                connection.tlsInterest = result == .wantRead ? .input : .outputSpace
            }
            return result
        } catch {
            connection.tlsHasFailed = true
            switch error {
            case .system(let number): return .failed(number)
            // Requests carry their length, so an end without close_notify truncates no request (RFC 9112 §9.8).
            case .truncated: return .closed
            case .certificate, .protocolFailure, .configuration: return .failed(EPROTO)
            }
        }
    }

    /// Sends close_notify (RFC 8446, 6.1), unless the connection is already lost; the worker waits for no answer. Later
    /// input is dropped, which needs no decryption.
    mutating func endTLS(_ connection: Connection) {
        if !connection.isHandshaking, !connection.tlsHasFailed { connection.tls?.sayClose() }
        connection.tls = nil
        connection.tlsInterest = nil
        host.account(connection)
    }

    /// Receives the waiting decrypted bytes, unless earlier requests must be answered first.
    /// - Returns: False if there are none.
    mutating func receivePendingTLS(_ connection: Connection) -> Bool {
        guard Self.hasReadableTLS(connection), !(connection.hasBufferedInput && connection.phase == .idle) else {
            return false
        }
        receive(connection)
        return true
    }

    static func hasReadableTLS(_ connection: Connection) -> Bool {
        guard let tls = connection.tls, !connection.isHandshaking, connection.interest == .input else { return false }
        return tls.hasPendingBytes
    }
}
