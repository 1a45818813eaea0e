#include "spec_text.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "console/terminal.h"
#include "spec/spec.h"

static char path[] = P_tmpdir "/rematch-spec-XXXXXX"; /* of the spec that a test writes; each test is a process */
static FILE *captured;                                /* replaces stderr */

void spec_text_begin(void)
{
    int descriptor = mkstemp(path);
    cr_assert(descriptor >= 0);
    close(descriptor);
    cr_assert((captured = tmpfile()) != NULL);
    fflush(stderr);
    dup2(fileno(captured), STDERR_FILENO);
}

void spec_text_end(void) { unlink(path); }

const char *messages(void)
{
    static char text[1 << 20];
    fflush(stderr);
    rewind(captured);
    size_t length = fread(text, 1, sizeof text - 1, captured);
    text[length] = 0;
    rewind(captured);
    cr_assert(ftruncate(fileno(captured), 0) == 0);
    return text;
}

static int count_errors(const char *text)
{
    int count = 0;
    for (; (text = strstr(text, " error: ")); text++) count++;
    return count;
}

/* The message of the error at place "FILE:12:3: error: " is in text and contains fragment. */
static bool is_reported(const char *text, const char *place, const char *fragment)
{
    for (const char *at = text; (at = strstr(at, place)); at++) {
        const char *message = at + strlen(place), *found = strstr(message, fragment);
        if (found && found < message + strcspn(message, "\n")) return true;
    }
    return false;
}

static void check_announced(const char *file)
{
    char line[1024], place[600], number[64];
    const char *text = messages();
    int announced = 0;
    FILE *in = fopen(file, "rb");
    cr_assert(in != NULL);
    while (fgets(line, sizeof line, in) && sscanf(line, "# %63[0-9:]", number) == 1) {
        const char *fragment = line + 2 + strlen(number) + 1;
        line[strcspn(line, "\n")] = 0;
        snprintf(place, sizeof place, "%s:%s: error: ", file, number);
        cr_expect(is_reported(text, place, fragment), "%s%s\nis not in\n%s", place, fragment, text);
        announced++;
    }
    fclose(in);
    cr_expect(announced > 0 && count_errors(text) == announced, "%s: %d announced; reported\n%s", file, announced,
              text);
}

int each_bad_file(const char *folder, void (*refuse)(const char *file))
{
    DIR *entries = opendir(folder);
    int files = 0;
    cr_assert(entries, "tests run in the project's root");
    for (struct dirent *entry; (entry = readdir(entries));) {
        char file[512];
        if (!strstr(entry->d_name, ".yaml")) continue;
        snprintf(file, sizeof file, "%s/%s", folder, entry->d_name);
        refuse(file);
        check_announced(file);
        files++;
    }
    closedir(entries);
    return files;
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
    enum status status = report_error(spec_load(path, count, argument, &spec));
    cr_assert(status == ST_OK || (status == ST_SPEC && !spec));
    return spec && baseline ? spec->baseline : spec;
}

struct spec *load_well(const char *text, const char *overrides, bool baseline)
{
    struct spec *spec = load(text, overrides, baseline);
    cr_assert(spec, "%s: %s", overrides, messages());
    return spec;
}
