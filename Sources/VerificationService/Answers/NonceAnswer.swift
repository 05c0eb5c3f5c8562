package import LimitedLogin

/// The answer of `POST /nonces`.
package enum NonceAnswer {
    /// Writes the nonce and its times as one JSON object.
    package static func write(_ issued: IssuedNonce, to bytes: inout [UInt8]) {
        JSONWriter.raw("{", to: &bytes)
        JSONWriter.member("nonce", issued.nonce.value, to: &bytes)
        JSONWriter.raw(",", to: &bytes)
        JSONWriter.member("app_id", issued.appID, to: &bytes)
        JSONWriter.raw(",\"issued_at\":", to: &bytes)
        JSONWriter.integer(Int(clamping: issued.issuedAt.wholeSeconds), to: &bytes)
        JSONWriter.raw(",\"expires_at\":", to: &bytes)
        JSONWriter.integer(Int(clamping: issued.expiresAt.wholeSeconds), to: &bytes)
        JSONWriter.raw("}", to: &bytes)
    }
}
