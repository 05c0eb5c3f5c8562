#include <dlfcn.h>

/* The C library's function of the same name. Several threads may look for it at once. */
#define ORIGINAL(name)                              \
    ({                                              \
        static _Atomic(__typeof__(&name)) found;    \
        if (!found)                                 \
            found = dlsym(RTLD_NEXT, #name);        \
        found;                                      \
    })
