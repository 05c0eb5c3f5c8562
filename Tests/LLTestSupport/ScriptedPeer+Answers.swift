extension ScriptedPeer {
    /// Sends a whole answer with its length and keeps the connection open.
    package func answerAndStay(status: String = "200 OK", fields: [String] = [], _ body: String = "") throws {
        keepsOpen = true
        try answer(status: status, fields: fields, body)
    }

    /// Sends a whole answer with its length.
    package func answer(status: String = "200 OK", fields: [String] = [], _ body: [UInt8] = []) throws {
        let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.count)"] + fields
        try send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body)
    }

    package func answer(status: String = "200 OK", fields: [String] = [], _ body: String) throws {
        try answer(status: status, fields: fields, Array(body.utf8))
    }

    /// Sends the bytes one by one, with a pause after each, until the client closes.
    package func drip(_ text: String, every pause: Duration) throws {
        for byte in text.utf8 {
            try send([byte])
            try self.pause(pause)
        }
    }

    /// Sends `head`, then `piece` again and again, until the client closes or `total` bytes of pieces are sent.
    package func repeatPiece(_ piece: [UInt8], head: String, total: Int) throws {
        try send(head)
        var sent = 0
        while sent < total {
            try send(piece)
            sent += piece.count
        }
    }
}
