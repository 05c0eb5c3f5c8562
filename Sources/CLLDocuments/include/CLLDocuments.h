/*
 * The OpenAPI document of the service, and the page of `demo` and `inspect`, as the compiler found their files. It is C
 * because C can embed a file: 0.04 s of compile time, where a Swift array literal of these bytes takes 12 s.
 */
#ifndef LIMITED_LOGIN_CDOCUMENTS_H
#define LIMITED_LOGIN_CDOCUMENTS_H

/* Each as UTF-8, ended by a zero byte. */
const char *openapi_document(void);
const char *page_html(void);
const char *page_style(void);
const char *page_script(void);
const char *page_documentation(void);
const char *page_agents(void);
const char *page_icon(void);
/* The commit that was built; empty if the build was not told. */
const char *build_commit(void);

#endif
