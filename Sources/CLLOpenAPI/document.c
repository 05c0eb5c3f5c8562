#include "CLLOpenAPI.h"

/* C23; this compiler takes it in any C. */
#pragma clang diagnostic ignored "-Wc23-extensions"

static const char document[] = {
#embed "openapi.json" suffix(,)
    0
};

const char *openapi_document(void) { return document; }
