/* Special files with the names of a result file: they are neither waited for nor written. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/made_runs.h"

static const char text[] = "the content of another file\n";

static bool is_untouched(const char *path)
{
    char now[sizeof text + 1] = "";
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "%s", path);
    const bool same = fread(now, 1, sizeof now, file) == strlen(text) && strcmp(now, text) == 0;
    fclose(file);
    return same;
}

static int make_pipe(const char *other, const char *path)
{
    (void)other;
    return mkfifo(path, 0600);
}

static int make_file(const char *other, const char *path)
{
    (void)other;
    FILE *file = fopen(path, "w");
    return file && fputs("left by a run that died", file) >= 0 && fclose(file) == 0 ? 0 : -1;
}

static const struct {
    const char *name;
    int (*make)(const char *other, const char *path);
} kinds[] = {{"file", make_file}, {"pipe", make_pipe}, {"symbolic link", symlink}, {"hard link", link}};

static enum status write_run(struct fake *fake)
{
    struct record *record;
    struct run_summary summary = {.high_water = 1};
    struct step_record step = fake_step(fake, 0);
    TRY(record_create(&fake->job, "variant", &record));
    TRY(record_step(record, &step));
    return record_finish(record, "completed", &summary, NULL);
}

/* A pipe, which may be in use, is not replaced by a result or a .part; other files are. */
Test(record_file, special_files_are_neither_waited_for_nor_written, .timeout = 60)
{
    static const char *const tails[] = {"", ".part", ".new", ".end"};
    struct fake fake;
    char folder[256], other[300], path[1024], odd[1100];
    folder_make(folder);
    fake_open(&fake, &nets[0], folder);
    fake_write(&fake, "variant", 1, NULL, path);
    snprintf(other, sizeof other, "%s/other", folder);
    for (size_t i = 0; i < 16; i++) {
        const char *tail = tails[i / 4], *kind = kinds[i % 4].name;
        unlink(path);
        unlink(other);
        snprintf(odd, sizeof odd, "%s%s", path, tail);
        FILE *file = fopen(other, "w");
        cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
        if (i != 0) cr_assert(kinds[i % 4].make(other, odd) == 0, "%s as %s", odd, kind); /* a result is a file */
        const bool refused = i / 4 < 2 && i % 4 == 1;
        const enum status status = write_run(&fake);
        cr_expect(status == (refused ? ST_FAILED : ST_OK), "%s as a %s: %s", odd, kind, status_message());
        cr_expect(!refused || (strstr(status_message(), odd) && strstr(status_message(), "is not a plain file")), "%s",
                  status_message());
        cr_expect(is_untouched(other), "written through %s as a %s", odd, kind);
        cr_expect(folder_count(folder, "") == 2, "%s as a %s: %d files", odd, kind, folder_count(folder, ""));
        if (refused) unlink(odd);
    }
    fake_close(&fake);
    folder_remove(folder);
}
