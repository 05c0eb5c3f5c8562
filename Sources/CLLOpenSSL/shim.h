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

/*
 * A new private key, RSA of 2,048 bits or on P-256, made from these numbers instead of random ones: the same numbers give
 * the same key. For tests alone. The key belongs to `library`, which the caller frees after it. NULL if OpenSSL refuses.
 */
static inline EVP_PKEY *CLLOpenSSL_repeatable_key(OSSL_LIB_CTX *library, int is_rsa, unsigned char *numbers, size_t count)
{
    unsigned int strength = 256;
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_octet_string(OSSL_RAND_PARAM_TEST_ENTROPY, numbers, count),
        OSSL_PARAM_construct_uint(OSSL_RAND_PARAM_STRENGTH, &strength),
        OSSL_PARAM_construct_end(),
    };
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = NULL;
    EVP_RAND_CTX *shared, *private_numbers;
    if (RAND_set_DRBG_type(library, "TEST-RAND", NULL, NULL, NULL) == 1 && (shared = RAND_get0_public(library)) != NULL
        && (private_numbers = RAND_get0_private(library)) != NULL && EVP_RAND_CTX_set_params(shared, parameters) == 1
        && EVP_RAND_CTX_set_params(private_numbers, parameters) == 1
        && (context = EVP_PKEY_CTX_new_from_name(library, is_rsa ? "RSA" : "EC", NULL)) != NULL
        && EVP_PKEY_keygen_init(context) == 1
        && (is_rsa ? EVP_PKEY_CTX_set_rsa_keygen_bits(context, 2048) : EVP_PKEY_CTX_set_group_name(context, "P-256")) == 1)
        EVP_PKEY_generate(context, &key);
    EVP_PKEY_CTX_free(context);
    return key;
}

#endif
