#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[2048];

/* A byte of a UTF-8 character that is not its first. */
static bool within_character(char byte) { return ((unsigned char)byte & 0xC0) == 0x80; }

#undef fail /* the function itself */
enum status fail(enum status status, const char *format, ...)
{
    char text[8 * sizeof message]; /* an argument may be the old message itself */
    const size_t most = sizeof message - 1, end = most / 2;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F) *c = '?';
    const size_t length = strlen(text);
    if (length <= most)
        strcpy(message, text);
    else { /* the long part is a name in the middle; the reason is at the end */
        const char *head = text + most - end - strlen(" ... "), *tail = text + length - end;
        while (head > text && within_character(*head)) head--;
        while (within_character(*tail)) tail++;
        snprintf(message, sizeof message, "%.*s ... %s", (int)(head - text), text, tail);
    }
    return status;
}

const char *status_message(void) { return message; }
