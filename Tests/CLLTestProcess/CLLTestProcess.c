#include "CLLTestProcess.h"

#include <openssl/crypto.h>

// The tests' process ends as the program itself does (see ProcessExit.swift): OpenSSL's memory is left to the system.
// Its own clean-up at exit would take from threads that still live what they would have freed, and the address
// sanitizer would report that as lost, depending on which test was the last. It must come before any other use.
__attribute__((constructor)) static void leave_openssl_in_place(void) {
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}
