#include "console/columns.h"

#include <assert.h>
#include <string.h>

#include "console/terminal.h"
#include "console/utf8.h"

enum { GAP = 2, CUT_LEAST = 4 };

struct layout {
    int width[COLUMNS_MOST];
    bool hidden[COLUMNS_MOST];
};

static int columns_of(const char *text) { return utf8_columns(text, strlen(text)); }

static void measure(const struct columns *t, struct layout *layout)
{
    for (int c = 0; c < t->count; c++) layout->width[c] = columns_of(t->column[c].head);
    for (int i = 0; i < t->rows * t->count; i++) {
        int *width = &layout->width[i % t->count];
        const int taken = columns_of(t->cell[i]);
        if (taken > *width) *width = taken;
    }
}

/* The width of a row; cut: with texts as short as they may become. */
static int total(const struct columns *t, const struct layout *layout, bool cut)
{
    int sum = t->indent - GAP;
    for (int c = 0; c < t->count; c++) {
        const int width = layout->width[c], least = t->column[c].least;
        if (!layout->hidden[c]) sum += GAP + (cut && least && least < width ? least : width);
    }
    return sum;
}

static bool hide_one(const struct columns *t, struct layout *layout)
{
    int worst = -1;
    for (int c = 0; c < t->count; c++)
        if (!layout->hidden[c] && t->column[c].rank && (worst < 0 || t->column[c].rank >= t->column[worst].rank))
            worst = c;
    if (worst >= 0) layout->hidden[worst] = true;
    return worst >= 0;
}

/* Takes one column from the text that most exceeds its least width. */
static bool cut_one(const struct columns *t, struct layout *layout)
{
    int widest = -1, most = 0;
    for (int c = 0; c < t->count; c++) {
        const int above = layout->width[c] - t->column[c].least;
        if (layout->hidden[c] || !t->column[c].least || layout->width[c] <= CUT_LEAST) continue;
        if (widest < 0 || above > most) widest = c, most = above;
    }
    if (widest >= 0) layout->width[widest]--;
    return widest >= 0;
}

/* One row, without blanks at its end. */
static void print_row(const struct columns *t, const struct layout *layout, const char *const cell[], FILE *out)
{
    int blanks = t->indent;
    for (int c = 0; c < t->count; c++) {
        if (layout->hidden[c]) continue;
        const int width = layout->width[c];
        const bool cut = columns_of(cell[c]) > width;
        const size_t bytes = cut ? utf8_fit(cell[c], width - 1) : strlen(cell[c]);
        const int rest = width - utf8_columns(cell[c], bytes) - cut;
        if (t->column[c].right) blanks += rest;
        if (bytes || cut) {
            fprintf(out, "%*s%.*s%s", blanks, "", (int)bytes, cell[c], cut ? "…" : "");
            blanks = 0;
        }
        blanks += (t->column[c].right ? 0 : rest) + GAP;
    }
    fputc('\n', out);
}

static void print_hidden(const struct columns *t, const struct layout *layout, int width, FILE *out)
{
    int named = 0;
    for (int c = 0; c < t->count; c++) {
        if (!layout->hidden[c]) continue;
        if (!named) fprintf(out, "%*s(left out at %d columns: ", t->indent, "", width);
        fprintf(out, "%s%s", named++ ? "; " : "", t->column[c].head);
    }
    if (named) fprintf(out, ")\n");
}

void columns_print(const struct columns *table, FILE *out)
{
    const int width = terminal_width(out);
    const char *head[COLUMNS_MOST];
    struct layout layout = {{0}, {0}};
    bool headed = false;
    assert(table->count <= COLUMNS_MOST);
    measure(table, &layout);
    while (width && total(table, &layout, true) > width && hide_one(table, &layout)) {
    }
    while (width && total(table, &layout, false) > width && cut_one(table, &layout)) {
    }
    for (int c = 0; c < table->count; c++) headed |= *(head[c] = table->column[c].head) != '\0';
    if (headed) print_row(table, &layout, head, out);
    for (int row = 0; row < table->rows; row++) print_row(table, &layout, table->cell + row * table->count, out);
    print_hidden(table, &layout, width, out);
}
