#include "run/progress.h"
#include "base/text.h"

#include <string.h>

#include "base/units.h"
#include "console/terminal.h"

enum { BAR_MOST = 24, BAR_LEAST = 6, BAR_ENDS = 2, GAP = 2, FIRST_LINES = 3, ITEM_TEXT = UNIT_TEXT + 16 };
static const uint64_t second = 1000000000;

/* The items of a line, in this order; the bar is between the first two. */
enum item { ITEM_STEP, ITEM_DONE, ITEM_LOSS, ITEM_TIME, ITEM_LIVE, ITEM_LEFT, ITEMS };

/* Items that a line loses on a narrow terminal, in this order. The bar shrinks first, down to BAR_LEAST, and disappears
 * last. */
static const enum item left_out_first[] = {ITEM_LIVE, ITEM_LEFT, ITEM_TIME, ITEM_LOSS, ITEM_STEP};
enum { LEFT_OUT = sizeof left_out_first / sizeof *left_out_first };

struct progress progress_begin(FILE *out, int64_t steps)
{
    return (struct progress){.out = out,
                             .terminal = out && terminal_width(out),
                             .colour = out && terminal_colour(out),
                             .steps = steps,
                             .start = clock_now_ns()};
}

static void erase_bar(struct progress *progress)
{
    if (progress->bar_shown) terminal_control(progress->out, "\r\033[K");
    progress->bar_shown = false;
}

/* Estimated from the mean time of the steps so far, including the first. */
static uint64_t time_left(const struct progress *progress)
{
    double each = (double)(clock_now_ns() - progress->start) / (double)(progress->done - progress->first);
    return (uint64_t)(each * (double)(progress->steps - progress->done));
}

static void describe(const struct progress *progress, const struct step_record *step, bool bar,
                     char item[ITEMS][ITEM_TEXT])
{
    const bool last = progress->done == progress->steps;
    memset(item, 0, ITEMS * sizeof *item);
    if (!bar) snprintf(item[ITEM_STEP], ITEM_TEXT, "step %u", step->step);
    snprintf(item[ITEM_DONE], ITEM_TEXT, "%lld/%lld", (long long)progress->done, (long long)progress->steps);
    snprintf(item[ITEM_LOSS], ITEM_TEXT, "loss %.*g", bar ? 7 : 9, (double)step->result.loss);
    snprintf(item[ITEM_TIME], ITEM_TEXT, "%s%s", DURATION_TEXT(step->total_ns), bar ? "/step" : "");
    snprintf(item[ITEM_LIVE], ITEM_TEXT, "live peak %s", BYTES_TEXT(step->live_peak));
    if (!last) snprintf(item[ITEM_LEFT], ITEM_TEXT, "%s left", DURATION_TEXT(time_left(progress)));
}

static int width_of(char item[ITEMS][ITEM_TEXT])
{
    int width = 0;
    for (int i = 0; i < ITEMS; i++) width += *item[i] ? GAP + (int)strlen(item[i]) : 0;
    return width;
}

static void print_bar(const struct progress *progress, int length)
{
    const double filled = (double)length * (double)progress->done / (double)progress->steps;
    fprintf(progress->out, "%*s", GAP, "");
    if (progress->colour) terminal_control(progress->out, "\033[36m");
    fputc('[', progress->out);
    for (int i = 0; i < length; i++) fputc(i < (int)filled ? '#' : '-', progress->out);
    fputc(']', progress->out);
    if (progress->colour) terminal_control(progress->out, "\033[0m");
}

/* Prints the items that fit the terminal's current width. The last column stays free: with the cursor in it, erasing to
 * the end of the line would erase a character. */
static void print_step(const struct progress *progress, const struct step_record *step, bool bar)
{
    const int width = progress->terminal ? terminal_width(progress->out) : 0;
    int length = bar ? BAR_MOST : 0;
    char item[ITEMS][ITEM_TEXT];
    describe(progress, step, bar, item);
    for (int i = 0; width && i < LEFT_OUT && width_of(item) + bar * (GAP + BAR_ENDS + BAR_LEAST) >= width; i++)
        *item[left_out_first[i]] = '\0';
    const int room = width - 1 - width_of(item) - GAP - BAR_ENDS;
    if (width && length > room) length = room;
    if (length >= BAR_LEAST) print_bar(progress, length);
    for (int i = 0; i < ITEMS; i++)
        if (*item[i]) fprintf(progress->out, "%*s%s", GAP, "", item[i]);
}

void progress_step(struct progress *progress, const struct step_record *step)
{
    if (!progress->out) return;
    uint64_t now = clock_now_ns();
    progress->done++;
    bool last = progress->done == progress->steps;
    if (progress->done <= FIRST_LINES || last || now - progress->last_line >= second) {
        erase_bar(progress);
        print_step(progress, step, false);
        fputc('\n', progress->out);
        progress->last_line = now;
    }
    if (progress->terminal && !last) {
        terminal_control(progress->out, "\r");
        print_step(progress, step, true);
        terminal_control(progress->out, "\033[K");
        progress->bar_shown = true;
    }
    fflush(progress->out);
}

void progress_eval(struct progress *progress, const struct eval_record *eval, const char *split)
{
    if (!progress->out) return;
    erase_bar(progress);
    fprintf(progress->out, "  after %u step%s  %s loss %.6g  accuracy %.2f %%\n", eval->step, text_plural(eval->step),
            split, (double)eval->loss, 100 * (double)eval->accuracy);
    fflush(progress->out);
}

void progress_end(struct progress *progress)
{
    if (!progress->out) return;
    erase_bar(progress);
    fflush(progress->out);
}
