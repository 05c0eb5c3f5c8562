/*
 * The OpenAPI document of the service, openapi.json, as the compiler found it. It is C because C can embed a file:
 * 0.04 s of compile time, where a Swift array literal of these bytes takes 12 s.
 */
#ifndef LIMITED_LOGIN_COPENAPI_H
#define LIMITED_LOGIN_COPENAPI_H

/* The document as UTF-8, ended by a zero byte. */
const char *openapi_document(void);

#endif
