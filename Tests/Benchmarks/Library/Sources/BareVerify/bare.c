#include "BareVerify.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

struct bare_verify {
    EVP_PKEY *key;
    EVP_PKEY_CTX *context;
    unsigned char digest[32], signature[1024], message[4096];
    size_t signature_count, message_count;
};

struct bare_verify *bare_verify_make(const unsigned char *modulus, size_t modulus_count, const unsigned char *exponent,
                                     size_t exponent_count, const unsigned char *signature, size_t signature_count,
                                     const unsigned char *message, size_t message_count) {
    static struct bare_verify bare;
    if (signature_count > sizeof bare.signature || message_count > sizeof bare.message)
        return NULL;
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    BIGNUM *n = BN_bin2bn(modulus, (int)modulus_count, NULL), *e = BN_bin2bn(exponent, (int)exponent_count, NULL);
    EVP_PKEY_CTX *maker = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    EVP_PKEY *key = NULL;
    if (!builder || !n || !e || !maker || OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) != 1 ||
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e) != 1 || EVP_PKEY_fromdata_init(maker) != 1 ||
        EVP_PKEY_fromdata(maker, &key, EVP_PKEY_PUBLIC_KEY, OSSL_PARAM_BLD_to_param(builder)) != 1)
        return NULL;
    bare.context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    if (!bare.context || EVP_PKEY_verify_init(bare.context) != 1 ||
        EVP_PKEY_CTX_set_rsa_padding(bare.context, RSA_PKCS1_PADDING) != 1 ||
        EVP_PKEY_CTX_set_signature_md(bare.context, EVP_sha256()) != 1 ||
        EVP_Digest(message, message_count, bare.digest, NULL, EVP_sha256(), NULL) != 1)
        return NULL;
    memcpy(bare.signature, signature, signature_count);
    bare.signature_count = signature_count;
    memcpy(bare.message, message, message_count);
    bare.message_count = message_count;
    bare.key = key;
    return &bare;
}

int bare_verify_run(struct bare_verify *bare) {
    return EVP_PKEY_verify(bare->context, bare->signature, bare->signature_count, bare->digest, sizeof bare->digest);
}

int bare_verify_run_message(struct bare_verify *bare) {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int good = context && EVP_DigestVerifyInit_ex(context, NULL, "SHA256", NULL, NULL, bare->key, NULL) == 1 &&
               EVP_DigestVerify(context, bare->signature, bare->signature_count, bare->message, bare->message_count) == 1;
    EVP_MD_CTX_free(context);
    return good;
}

double processor_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The functions below replace the C library's allocation functions in this program, and count the calls. */
static atomic_long allocations;
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static void note(void) { atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed); }

void *malloc(size_t size) {
    note();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    note();
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    note();
    return __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size) {
    note();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    note();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    note();
    *result = __libc_memalign(alignment, size);
    return *result ? 0 : 12;
}

long allocation_count(void) { return atomic_load_explicit(&allocations, memory_order_relaxed); }
