#include "status.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char message[2048];

#undef fail /* the function itself */
enum status fail(enum status status, const char *format, ...)
{
    char text[sizeof message]; /* an argument may be the old message itself */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F) *c = '?';
    snprintf(message, sizeof message, "%s", text);
    return status;
}

const char *status_message(void) { return message; }
