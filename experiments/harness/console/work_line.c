#include "console/work_line.h"

#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "base/units.h"
#include "base/work.h"
#include "console/terminal.h"

static const uint64_t silent_ns = 2000000000, between_ns = 200000000;
static struct work_line line;

bool work_line_text(struct work_line *l, uint64_t now, const char *what, double share, char text[WORK_LINE])
{
    if (!l->what || strcmp(l->what, what) != 0 || share < l->share) l->part_began = now;
    l->what = what;
    l->share = share;
    if (now - l->began < silent_ns || now - l->shown < between_ns || share <= 0) return false;
    l->shown = now;
    const double rest = (double)(now - l->part_began) * (1 - share) / share;
    const int used =
        snprintf(text, WORK_LINE, "  %s so far; %s: %.0f %%", DURATION_TEXT(now - l->began), what, 100 * share);
    if (now > l->part_began) snprintf(text + used, WORK_LINE - (size_t)used, ", %s left", DURATION_TEXT(rest));
    return true;
}

static void show(const char *what, double share)
{
    char text[WORK_LINE];
    if (work_line_text(&line, clock_now_ns(), what, share, text)) terminal_note(stderr, text);
}

void work_line_begin(void)
{
    line = (struct work_line){.began = clock_now_ns()};
    work_watch = show;
}

void work_line_end(void)
{
    work_watch = NULL;
    if (line.shown) terminal_note(stderr, "");
}
