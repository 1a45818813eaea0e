/* What make runs for an experiment, by its own schedule (make -n). */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wordexp.h>

#include "spec/spec.h"
#include "tests/support/spec_text.h"

/* Commands that make would run for name, with rematch run in them; *last: the last. */
static int runs(const char *name, const char *arguments, char last[1024])
{
    char command[512], line[1024];
    int count = 0;
    snprintf(command, sizeof command, "env -u MAKEFLAGS make -n DEPS=no exp-%s ARGS='%s'", name, arguments);
    FILE *made = popen(command, "r");
    cr_assert(made);
    while (fgets(line, sizeof line, made)) {
        if (!strstr(line, "/rematch run ")) continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(last, 1024, "%s", line);
        count++;
    }
    cr_expect(pclose(made) == 0, "%s", command);
    return count;
}

/* The last run's spec, read with the overrides that make would give. */
static struct spec *spec_of(const char *line)
{
    wordexp_t words;
    struct spec *spec;
    cr_assert(wordexp(line, &words, WRDE_NOCMD) == 0, "%s", line);
    cr_assert(words.we_wordc >= 3 && !strcmp(words.we_wordv[1], "run"));
    cr_assert(spec_load(words.we_wordv[2], (int)words.we_wordc - 3, (const char *const *)words.we_wordv + 3, &spec) ==
                  ST_OK,
              "%s: %s", line, messages());
    wordfree(&words);
    return spec;
}

static void check(const char *name)
{
    char file[512], line[1024];
    struct spec *own;
    snprintf(file, sizeof file, "experiments/%s.yaml", name);
    cr_assert(spec_load(file, 0, NULL, &own) == ST_OK, "%s: %s", file, messages());
    const bool alike = !strcmp(own->data->name, "ones");
    cr_expect(runs(name, "steps=7 batch=2", line) == 1 + alike, "%s", name);
    struct spec *spec = spec_of(line);
    cr_expect(spec->batch == 2 && spec->steps == (alike ? 2 : 7), "%s", line);
    cr_expect(!strcmp(spec->data->name, alike ? "synthetic" : own->data->name), "%s", line);
    cr_expect(!alike || strstr(spec->name, "-synthetic"), "%s", spec->name);
    spec_destroy(spec);
    spec_destroy(own);
}

TestSuite(make, .init = spec_text_begin, .fini = spec_text_end);

Test(make, samples_that_are_all_alike_are_proved_again_with_unlike_ones)
{
    DIR *folder = opendir("experiments");
    char line[1024];
    cr_assert(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char name[256], *dot;
        snprintf(name, sizeof name, "%s", entry->d_name);
        if (!(dot = strstr(name, ".yaml"))) continue;
        *dot = '\0';
        check(name);
    }
    closedir(folder);
    cr_expect(runs("vgg16-recompute", "data.classes=10", line) == 1); /* the data are the user's */
}
