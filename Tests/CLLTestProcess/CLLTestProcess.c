#define _GNU_SOURCE
#include "CLLTestProcess.h"

#include <dlfcn.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

// The tests' process exits like the program itself (see ProcessExit.swift): without OpenSSL's clean-up. Threads that
// still run could no longer free their memory after that clean-up. The address sanitizer would then report a leak in
// some runs, depending on the last test. This function must be the first use of OpenSSL.
__attribute__((constructor)) static void leave_openssl_in_place(void) {
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

static _Thread_local _Bool fails_here;

void openssl_fails(_Bool fails) { fails_here = fails; }

/* It replaces OpenSSL's function for the tests' process. */
EVP_PKEY_CTX *EVP_PKEY_CTX_new_from_pkey(OSSL_LIB_CTX *library, EVP_PKEY *key, const char *properties) {
    static __typeof__(&EVP_PKEY_CTX_new_from_pkey) original;
    if (!original)
        original = dlsym(RTLD_NEXT, "EVP_PKEY_CTX_new_from_pkey");
    return fails_here ? NULL : original(library, key, properties);
}
