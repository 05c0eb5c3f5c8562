/* Preloaded into a program (LD_PRELOAD), counts all heap allocations, and separately those of libcrypto. At the end it
   writes both counts to the file that ALLOCATION_COUNT_FILE names: first all, then libcrypto's, a line each. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_ulong allocations, of_libcrypto;
/* The range of libcrypto's code; empty until the constructor has found it. */
static uintptr_t libcrypto_start, libcrypto_end;

/* Inlined into each function below, so that the return address lies in the code that asks for memory. */
__attribute__((always_inline)) static inline void note(uintptr_t caller) {
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    if (caller >= libcrypto_start && caller < libcrypto_end)
        atomic_fetch_add_explicit(&of_libcrypto, 1, memory_order_relaxed);
}

#define NOTE_CALLER() note((uintptr_t)__builtin_return_address(0))

void *malloc(size_t size) {
    NOTE_CALLER();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    NOTE_CALLER();
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    NOTE_CALLER();
    return __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size) {
    NOTE_CALLER();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    NOTE_CALLER();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    NOTE_CALLER();
    void *memory = __libc_memalign(alignment, size);
    if (!memory) return ENOMEM;
    *result = memory;
    return 0;
}

static int find_libcrypto(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    if (!strstr(info->dlpi_name, "libcrypto.so")) return 0;
    for (int index = 0; index < info->dlpi_phnum; index++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[index];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        libcrypto_start = info->dlpi_addr + part->p_vaddr;
        libcrypto_end = libcrypto_start + part->p_memsz;
    }
    return 1;
}

__attribute__((constructor)) static void begin(void) { dl_iterate_phdr(find_libcrypto, NULL); }

__attribute__((destructor)) static void end(void) {
    unsigned long all = atomic_load(&allocations), inside = atomic_load(&of_libcrypto);
    const char *path = getenv("ALLOCATION_COUNT_FILE");
    int output = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (output >= 0) dprintf(output, "%lu\n%lu\n", all, inside);
}
