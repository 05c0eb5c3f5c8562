/* The least cost: OpenSSL's RSA-2048 verification alone, with a context that was initialised once and a digest that is
   ready. Prints the CPU microseconds of one verification.

   bare-verify KEY.pem DIGEST SIGNATURE SECONDS
   bare-verify KEY.pem SECONDS

   KEY.pem is a public key; DIGEST a file of 32 bytes and SIGNATURE one of the modulus' length. In the second form it is
   a private key of RSA or P-256, and a signature of a digest is measured in the same way. */
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../load.h"

static double processor_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The mean CPU microseconds of a signature. */
static int measure_signing(const char *path, double seconds) {
    FILE *file = fopen(path, "r");
    EVP_PKEY *key = file ? PEM_read_PrivateKey(file, NULL, NULL, NULL) : NULL;
    EVP_PKEY_CTX *context = key ? EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL) : NULL;
    if (!context || EVP_PKEY_sign_init(context) != 1 || EVP_PKEY_CTX_set_signature_md(context, EVP_sha256()) != 1)
        return 1;
    unsigned char digest[32] = {0}, signature[1024];
    double start = processor_seconds(), stop = start;
    long total = 0;
    for (; stop < start + seconds; stop = processor_seconds())
        for (int round = 0; round < 20; round++, total++) {
            size_t length = sizeof signature;
            if (EVP_PKEY_sign(context, signature, &length, digest, sizeof digest) != 1) return 1;
        }
    printf("{\"mean_us\":%.3f}\n", (stop - start) * 1e6 / (double)total);
    return 0;
}

int main(int count, char **arguments) {
    if (count == 3) return measure_signing(arguments[1], atof(arguments[2]));
    if (count != 5) return 2;
    FILE *file = fopen(arguments[1], "r");
    EVP_PKEY *key = file ? PEM_read_PUBKEY(file, NULL, NULL, NULL) : NULL;
    unsigned char digest[32], signature[1024];
    size_t digest_count = load(arguments[2], digest, sizeof digest);
    size_t signature_count = load(arguments[3], signature, sizeof signature);
    EVP_PKEY_CTX *context = key ? EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL) : NULL;
    if (!context || EVP_PKEY_verify_init(context) != 1 ||
        EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) != 1 ||
        EVP_PKEY_CTX_set_signature_md(context, EVP_sha256()) != 1)
        return 1;
    double end = processor_seconds() + atof(arguments[4]);
    double start = processor_seconds(), stop = start;
    long total = 0;
    for (; stop < end; stop = processor_seconds(), total += 500)
        for (int round = 0; round < 500; round++)
            if (EVP_PKEY_verify(context, signature, signature_count, digest, digest_count) != 1) return 1;
    printf("{\"mean_us\":%.3f}\n", (stop - start) * 1e6 / (double)total);
    return 0;
}
