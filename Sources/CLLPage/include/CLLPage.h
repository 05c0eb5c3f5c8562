/* The page of `demo` and `inspect`, as the compiler found its files. It is C because C can embed a file. */
#ifndef LIMITED_LOGIN_CPAGE_H
#define LIMITED_LOGIN_CPAGE_H

/* Each as UTF-8, ended by a zero byte. */
const char *page_html(void);
const char *page_style(void);
const char *page_script(void);
const char *page_documentation(void);
const char *page_icon(void);

#endif
