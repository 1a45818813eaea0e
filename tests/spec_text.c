#include "spec_text.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = P_tmpdir "/rematch-spec-XXXXXX"; /* of the spec that a test writes; each test is a process */
static FILE *told;                                    /* takes the place of stderr */

void spec_text_begin(void)
{
    int descriptor = mkstemp(path);
    cr_assert(descriptor >= 0);
    close(descriptor);
    cr_assert((told = tmpfile()) != NULL);
    fflush(stderr);
    dup2(fileno(told), STDERR_FILENO);
}

void spec_text_end(void) { unlink(path); }

const char *messages(void)
{
    static char text[1 << 20];
    fflush(stderr);
    rewind(told);
    size_t length = fread(text, 1, sizeof text - 1, told);
    text[length] = 0;
    rewind(told);
    cr_assert(ftruncate(fileno(told), 0) == 0);
    return text;
}

const char *write_bytes(const char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file && fwrite(bytes, 1, length, file) == length && !fclose(file));
    return path;
}

struct spec *load(const char *text, const char *overrides, bool baseline)
{
    char copy[1024], *rest = NULL;
    const char *argument[32];
    int count = 0;
    struct spec *spec;
    write_bytes(text, strlen(text));
    snprintf(copy, sizeof copy, "%s", overrides);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) argument[count++] = word;
    enum status status = spec_load(path, count, argument, baseline, &spec);
    cr_assert(status == ST_OK || (status == ST_SPEC && !spec));
    return spec;
}

struct spec *load_well(const char *text, const char *overrides, bool baseline)
{
    struct spec *spec = load(text, overrides, baseline);
    cr_assert(spec, "%s: %s", overrides, messages());
    return spec;
}
