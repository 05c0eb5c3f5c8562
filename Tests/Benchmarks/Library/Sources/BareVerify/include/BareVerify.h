/* The least cost of a login: OpenSSL's verification of one RSA signature, with a context that was initialised once. Also
   counts the heap allocations of the process. */
#include <stddef.h>

struct bare_verify;

/* Keeps SHA-256 of the message and the signature; NULL if OpenSSL fails. */
struct bare_verify *bare_verify_make(const unsigned char *modulus, size_t modulus_count, const unsigned char *exponent,
                                     size_t exponent_count, const unsigned char *signature, size_t signature_count,
                                     const unsigned char *message, size_t message_count);
/* 1 if the signature is good. */
int bare_verify_run(struct bare_verify *bare);
/* The same by OpenSSL's usual calls, EVP_DigestVerifyInit_ex and EVP_DigestVerify: a new context, SHA-256 of the message,
   the signature. The key is kept. */
int bare_verify_run_message(struct bare_verify *bare);
/* The processor time of the process in seconds. */
double processor_seconds(void);
long allocation_count(void);
