#ifndef LIMITED_LOGIN_CLLOPENSSL_SHIM_H
#define LIMITED_LOGIN_CLLOPENSSL_SHIM_H

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>

/* EVP_PKEY_PUBLIC_KEY is a compound macro, which Swift cannot import. */
static const int CLLOpenSSL_EVP_PKEY_PUBLIC_KEY = EVP_PKEY_PUBLIC_KEY;

#endif
