#include "CLLTestProcess.h"

#include <openssl/crypto.h>

// The tests' process exits like the program itself (see ProcessExit.swift): without OpenSSL's clean-up. Threads that
// still run could no longer free their memory after that clean-up. The address sanitizer would then report a leak in
// some runs, depending on the last test. This function must be the first use of OpenSSL.
__attribute__((constructor)) static void leave_openssl_in_place(void) {
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}
