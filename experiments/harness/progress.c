#include "progress.h"
#include "text.h"

#include <stdlib.h>
#include <unistd.h>

#include "units.h"

enum { BAR_WIDTH = 24, FIRST_LINES = 3 };
static const uint64_t second = 1000000000;

bool colour_wanted(FILE *out)
{
    const char *no = getenv("NO_COLOR");
    return isatty(fileno(out)) && !(no && *no);
}

struct progress progress_begin(FILE *out, int64_t steps)
{
    return (struct progress){.out = out,
                             .terminal = out && isatty(fileno(out)),
                             .colour = out && colour_wanted(out),
                             .steps = steps,
                             .start = clock_now_ns()};
}

static void erase_bar(struct progress *progress)
{
    if (progress->bar_shown) fputs("\r\033[K", progress->out);
    progress->bar_shown = false;
}

/* What is left to do, guessed from the mean of what was done; the first step, with its warm-up, counts too. */
static uint64_t time_left(const struct progress *progress)
{
    double each = (double)(clock_now_ns() - progress->start) / (double)progress->done;
    return (uint64_t)(each * (double)(progress->steps - progress->done));
}

static void draw_bar(struct progress *progress, const struct step_record *step)
{
    char each[UNIT_TEXT], left[UNIT_TEXT], live[UNIT_TEXT], bar[BAR_WIDTH + 1];
    int filled = (int)((double)BAR_WIDTH * (double)progress->done / (double)progress->steps);
    for (int i = 0; i < BAR_WIDTH; i++) bar[i] = i < filled ? '#' : '-';
    bar[BAR_WIDTH] = '\0';
    fprintf(progress->out, "\r  %s[%s]%s %lld/%lld  loss %.7g  %s/step  live peak %s  %s left\033[K",
            progress->colour ? "\033[36m" : "", bar, progress->colour ? "\033[0m" : "", (long long)progress->done,
            (long long)progress->steps, (double)step->loss, duration_text(step->total_ns, each),
            bytes_text((double)step->live_peak, live), duration_text(time_left(progress), left));
    progress->bar_shown = true;
}

void progress_step(struct progress *progress, const struct step_record *step)
{
    if (!progress->out) return;
    uint64_t now = clock_now_ns();
    progress->done++;
    bool last = progress->done == progress->steps;
    if (progress->done <= FIRST_LINES || last || now - progress->last_line >= second) {
        char each[UNIT_TEXT], live[UNIT_TEXT], left[UNIT_TEXT];
        erase_bar(progress);
        fprintf(progress->out, "  step %u  %lld/%lld  loss %.9g  %s  live peak %s", step->step,
                (long long)progress->done, (long long)progress->steps, (double)step->loss,
                duration_text(step->total_ns, each), bytes_text((double)step->live_peak, live));
        if (last)
            fputc('\n', progress->out);
        else
            fprintf(progress->out, "  %s left\n", duration_text(time_left(progress), left));
        progress->last_line = now;
    }
    if (progress->terminal && !last) draw_bar(progress, step);
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

void progress_note(FILE *out, const char *text)
{
    if (!out || !isatty(fileno(out))) return;
    fprintf(out, "\r\033[K%s", text);
    fflush(out);
}
