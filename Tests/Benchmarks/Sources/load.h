#include <stdio.h>

/* Reads at most `most` bytes of a file, and returns their number; 0 if there is no file. */
static size_t load(const char *path, unsigned char *bytes, size_t most) {
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    size_t count = fread(bytes, 1, most, file);
    fclose(file);
    return count;
}
