/* What a person sees of a run: step lines everywhere, a bar on a terminal alone, in colour unless that is not
 * wanted. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "progress.h"

enum { STEPS = 6, ROOM = 8192 };

static void watch(FILE *out)
{
    struct progress p = progress_begin(out, STEPS);
    for (uint32_t i = 0; i < STEPS; i++) {
        const struct step_record step = {.step = i, .loss = 1.5F, .total_ns = 2000000, .live_peak = 3 << 20};
        progress_step(&p, &step);
    }
    progress_eval(&p, &(struct eval_record){STEPS, 0.5F, 0.75F}, "test");
    progress_end(&p);
    progress_note(out, "planning");
    progress_note(out, "");
}

/* What a terminal is sent. */
static void on_terminal(char text[ROOM])
{
    size_t length = 0;
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0) cr_skip_test("no terminals here");
    cr_assert(grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    const int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    FILE *out = other < 0 ? NULL : fdopen(other, "w");
    cr_assert(out);
    watch(out);
    fclose(out);
    for (ssize_t got; (got = read(terminal, text + length, ROOM - 1 - length)) > 0;) length += (size_t)got;
    text[length] = '\0';
    close(terminal);
}

static void check_lines(const char *text)
{
    static const char *const lines[] = {
        "  step 0  1/6  loss 1.5  2.0 ms  live peak 3.00 MiB  ", "  step 2  3/6  loss 1.5  ",
        "  step 5  6/6  loss 1.5  2.0 ms  live peak 3.00 MiB", "  after 6 steps  test loss 0.5  accuracy 75.00 %"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_assert(strstr(text, lines[i]), "'%s' is not in\n%s", lines[i], text);
}

Test(progress, a_file_gets_lines_and_nothing_else)
{
    char kept[ROOM];
    FILE *out = tmpfile();
    watch(out);
    rewind(out);
    kept[fread(kept, 1, sizeof kept - 1, out)] = '\0';
    fclose(out);
    check_lines(kept);
    cr_assert(!strpbrk(kept, "\r\033#") && !strstr(kept, "planning"), "%s", kept);
}

Test(progress, a_terminal_gets_a_bar_that_is_taken_away)
{
    static const char *const wishes[] = {NULL, "", "1"};
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        char text[ROOM];
        if (wishes[i]) setenv("NO_COLOR", wishes[i], 1);
        if (!wishes[i]) unsetenv("NO_COLOR");
        on_terminal(text);
        check_lines(text);
        const bool colour = i < 2;
        cr_assert(strstr(text, colour ? "\r  \033[36m[####----" : "\r  [####----"), "%s", text);
        cr_assert((strstr(text, "\033[36m") != NULL) == colour, "%s", text);
        const char *bar = strrchr(text, '#');
        cr_assert(strstr(bar, "\r\033[K"), "%s", text);
        const char *note = strstr(text, "\r\033[Kplanning\r\033[K");
        cr_assert(note && !note[strlen("\r\033[Kplanning\r\033[K")], "%s", text);
    }
}

Test(progress, nothing_is_written_where_nobody_reads) { watch(NULL); }
