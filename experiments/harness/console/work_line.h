/* The progress of work that takes over two seconds, as one line on stderr's terminal. Elsewhere nothing is printed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* From begin to end, what work_report() (base/work.h) counts is shown; end erases it. */
void work_line_begin(void);
void work_line_end(void);

/* When the work and its current part began, and the line was last shown, in ns; and the part. */
struct work_line {
    uint64_t began, part_began, shown;
    const char *what;
    double share;
};

/* Whether at the time now a share of what is to be shown, in text: with the time left of this part, unless it begins
 * just now. */
enum { WORK_LINE = 160 };
bool work_line_text(struct work_line *line, uint64_t now, const char *what, double share, char text[WORK_LINE]);
