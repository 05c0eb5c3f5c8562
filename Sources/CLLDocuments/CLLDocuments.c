#include "CLLDocuments.h"

/* C23; this compiler takes it in any C. */
#pragma clang diagnostic ignored "-Wc23-extensions"

static const char openapi[] = {
#embed "openapi.json" suffix(,)
    0
};
static const char html[] = {
#embed "page.html" suffix(,)
    0
};
static const char style[] = {
#embed "page.css" suffix(,)
    0
};
static const char script[] = {
#embed "page.js" suffix(,)
    0
};
static const char documentation[] = {
#embed "../LLService/LLService.docc/API.md" suffix(,)
    0
};
static const char agents[] = {
#embed "../../config/llms.txt" suffix(,)
    0
};
static const char icon[] = {
#embed "icon.svg" suffix(,)
    0
};

const char *openapi_document(void) { return openapi; }
const char *page_html(void) { return html; }
const char *page_style(void) { return style; }
const char *page_script(void) { return script; }
const char *page_documentation(void) { return documentation; }
const char *page_agents(void) { return agents; }
const char *page_icon(void) { return icon; }
const char *build_commit(void) { return LIMITED_LOGIN_COMMIT; }
