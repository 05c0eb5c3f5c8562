internal import COpenSSL

/// What OpenSSL does when the process ends.
package enum ProcessExit {
    /// Tells OpenSSL to leave its memory to the system at the end of the process; call it before anything else here.
    ///
    /// By default OpenSSL frees its global state in an `atexit` handler. `exit` does not wait for other threads, so
    /// a worker that verifies or a fetch under way would then use freed locks and crash, and an orderly stop would
    /// end with a signal instead of its exit code (OPENSSL_init_crypto(3), OPENSSL_INIT_NO_ATEXIT).
    package static func leavesOpenSSLInPlace() {
        // It fails only when OpenSSL cannot start at all; whatever needs it next says so with a reason.
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}
