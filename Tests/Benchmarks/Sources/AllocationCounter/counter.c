/* Preloaded into the service (LD_PRELOAD), counts its heap allocations, and on SIGUSR2 writes the count so far to the
   file ALLOCATION_COUNT_FILE names, as decimal digits in 20 bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_ulong allocations;

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

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **result, size_t alignment, size_t size) {
    void *memory = memalign(alignment, size);
    if (!memory) return ENOMEM;
    *result = memory;
    return 0;
}

static int output = -1;

static void report(int signal) {
    (void)signal;
    int saved = errno;
    unsigned long count = atomic_load(&allocations);
    char digits[21];
    digits[20] = '\n';
    for (int at = 19; at >= 0; at--, count /= 10) digits[at] = (char)('0' + count % 10);
    if (output >= 0 && pwrite(output, digits, sizeof digits, 0) < 0) output = -1;
    errno = saved;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("ALLOCATION_COUNT_FILE");
    if (!path) return;
    output = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct sigaction action = {.sa_handler = report, .sa_flags = SA_RESTART};
    sigaction(SIGUSR2, &action, NULL);
}
