/* The progress of a run: step lines everywhere, a bar on terminals alone, in colour unless NO_COLOR is set. */
#include <criterion/criterion.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "console/terminal.h"
#include "run/progress.h"
#include "tests/support/terminal_screen.h"

enum { STEPS = 6, ROOM = 16384 };

/* A terminal of that width and its other end. */
struct terminal {
    FILE *out, *plain;
    int master;
};

static void resize(const struct terminal *t, int columns)
{
    const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    cr_assert(ioctl(t->master, TIOCSWINSZ, &size) == 0);
}

static struct terminal terminal_open(int columns)
{
    struct terminal t = {NULL};
    int slave;
    if (openpty(&t.master, &slave, NULL, NULL, NULL) != 0) cr_skip_test("no terminals here");
    resize(&t, columns);
    t.out = t.plain = fdopen(slave, "w");
    cr_assert(t.out);
    terminal_wrap(&t.out, true);
    cr_assert(t.out != t.plain);
    return t;
}

/* Everything sent to it so far, up to a bell, which only this test sends. */
static void terminal_sent(const struct terminal *t, char text[ROOM])
{
    size_t length = 0;
    fputc('\a', t->plain);
    fflush(t->plain);
    while (length == 0 || text[length - 1] != '\a') {
        const ssize_t got = read(t->master, text + length, ROOM - length);
        cr_assert(got > 0);
        length += (size_t)got;
    }
    text[length - 1] = '\0';
}

static void terminal_close(const struct terminal *t)
{
    fclose(t->out);
    fclose(t->plain);
    close(t->master);
}

static void watch(FILE *out)
{
    struct progress p = progress_begin(out, STEPS);
    for (uint32_t i = 0; i < STEPS; i++) {
        const struct step_record step = {.step = i, .result.loss = 1.5F, .total_ns = 2000000, .live_peak = 3 << 20};
        progress_step(&p, &step);
    }
    progress_eval(&p, &(struct eval_record){STEPS, 0.5F, 0.75F}, "test");
    progress_end(&p);
    terminal_note(out, "planning");
    terminal_note(out, "");
}

/* The output on a wide terminal. */
static void on_terminal(char text[ROOM])
{
    const struct terminal t = terminal_open(132);
    watch(t.out);
    terminal_sent(&t, text);
    terminal_close(&t);
}

static void check_lines(const char *text)
{
    static const char *const lines[] = {
        "  step 0  1/6  loss 1.5  2.0 ms  live peak 3.00 MiB  ", "  step 2  3/6  loss 1.5  ",
        "  step 5  6/6  loss 1.5  2.0 ms  live peak 3.00 MiB", "  after 6 steps  test loss 0.5  accuracy 75.00 %"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_assert(strstr(text, lines[i]), "'%s' is not in\n%s", lines[i], text);
}

Test(progress, a_file_has_step_lines_alone)
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

Test(progress, a_terminal_shows_a_bar_and_removes_it)
{
    static const char *const wishes[] = {NULL, "", "1"};
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        char text[ROOM];
        if (wishes[i]) setenv("NO_COLOR", wishes[i], 1);
        if (!wishes[i]) unsetenv("NO_COLOR");
        on_terminal(text);
        check_lines(text);
        const bool colour = i < 2;
        cr_assert(strstr(text, colour ? "\r\033[36m  [####----" : "\r  [####----"), "%s", text);
        cr_assert((strstr(text, "\033[36m") != NULL) == colour, "%s", text);
        const char *bar = strrchr(text, '#');
        cr_assert(strstr(bar, "\r\033[K"), "%s", text);
        const char *note = strstr(text, "\r\033[Kplanning\r\033[K");
        cr_assert(note && !note[strlen("\r\033[Kplanning\r\033[K")], "%s", text);
    }
}

/* The widest possible numbers. */
static void take_step(struct progress *p, uint32_t number)
{
    const struct step_record step = {
        .step = number, .result.loss = -1.23456789e-10F, .total_ns = 119900000000, .live_peak = (uint64_t)1023 << 30};
    progress_step(p, &step);
}

/* Asserts that no line is too long, that no bar is left, and the text of the screen. */
static void check_screen(const char *sent, int columns, const char *const *there, const char *const *missing)
{
    int over;
    char *shown = screen_show(sent, columns, &over);
    cr_expect(over == 0, "%d lines of more than %d columns\n%s", over, columns, sent);
    cr_expect(!strpbrk(shown, "[#"), "a bar is left over:\n%s", shown);
    for (; *there; there++) cr_expect(strstr(sent, *there), "'%s' is not in\n%s", *there, sent);
    for (; *missing; missing++) cr_expect(!strstr(sent, *missing), "'%s' is in\n%s", *missing, sent);
    free(shown);
}

Test(progress, lines_and_bars_fit_a_terminal_of_any_width)
{
    static const struct {
        int columns;
        const char *there[6], *missing[6];
    } cases[] = {
        {120, {"[------------------------]", "live peak", " left", "/step", "  loss"}, {NULL}},
        {100, {"[------", "live peak", " left", "/step", "  loss"}, {"[------------------------]"}},
        {80, {"[---------------", " left", "119.9 s/step", "  loss"}, {NULL}},
        {60, {"[------", "119.9 s/step", "  loss"}, {"live peak", " left"}},
        {44, {"[------", "  loss -1.234568e-10\033[K", "step 0"}, {"live peak", " left", "119.9"}},
        {24, {"[------", "1/100000\033[K"}, {"live peak", " left", "119.9", "loss -"}},
        {12, {"  1/100000\033[K"}, {"live peak", " left", "119.9", "loss -", "[-", "step 0"}},
        {0, {" left", "119.9 s/step", "  loss"}, {NULL}},
    };
    unsetenv("COLUMNS");
    setenv("NO_COLOR", "1", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sent[ROOM];
        const struct terminal t = terminal_open(cases[i].columns);
        struct progress p = progress_begin(t.out, 100000);
        for (uint32_t step = 0; step < 6; step++) take_step(&p, step);
        progress_eval(&p, &(struct eval_record){6, 0.5F, 0.75F}, "test");
        terminal_note(t.out, "  planning batch 1024: selective with kinds that have long names, and many more of them "
                             "than any terminal can show in one line");
        terminal_note(t.out, "");
        progress_end(&p);
        terminal_sent(&t, sent);
        check_screen(sent, cases[i].columns ? cases[i].columns : 80, cases[i].there, cases[i].missing);
        terminal_close(&t);
    }
}

Test(progress, a_terminal_without_a_width_uses_columns)
{
    static const struct {
        const char *columns;
        int width;
    } cases[] = {{NULL, 80}, {"", 80}, {"132", 132}, {"40", 40}, {"0", 80}, {"-5", 80}, {"99999", 80}, {"x", 80}};
    const struct terminal unknown = terminal_open(0), known = terminal_open(60);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsetenv("COLUMNS");
        if (cases[i].columns) setenv("COLUMNS", cases[i].columns, 1);
        cr_expect(terminal_width(unknown.out) == cases[i].width, "COLUMNS=%s", cases[i].columns);
        cr_expect(terminal_width(known.out) == 60);
    }
    FILE *file = tmpfile();
    cr_expect(terminal_width(file) == 0);
    fclose(file);
    terminal_close(&unknown);
    terminal_close(&known);
}

Test(progress, the_width_is_read_again_after_a_resize)
{
    static const int columns[] = {80, 40, 100, 50};
    static const char *const nothing[] = {NULL};
    const struct terminal t = terminal_open(80);
    struct progress p = progress_begin(t.out, 100000);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        char sent[ROOM];
        resize(&t, columns[i]);
        take_step(&p, (uint32_t)i);
        progress_end(&p);
        terminal_sent(&t, sent);
        check_screen(sent, columns[i], nothing, nothing);
        const char *bar = strrchr(sent, ']'), *const end = strstr(sent, "\033[K\r\033[K");
        cr_expect(bar && end && end - strstr(sent, "\r  ") > columns[i] - 24, "narrower than it need be: %s", sent);
    }
    terminal_close(&t);
}

Test(progress, nothing_is_written_without_a_stream) { watch(NULL); }
