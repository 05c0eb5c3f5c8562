#ifndef LIMITED_LOGIN_CLIBFUZZER_SHIM_H
#define LIMITED_LOGIN_CLIBFUZZER_SHIM_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's entry for programs that have a main of their own. */
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*callback)(const uint8_t *data, size_t size));

#endif
