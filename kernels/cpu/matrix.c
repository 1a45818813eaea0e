#include "matrix.h"

#include <string.h>

#include "numerics/shape.h"

/* Rows that are fetched ahead: the processor does not do so by itself, since they are short and far apart. */
enum { AHEAD = 8 };

/* Rows of a stored matrix, side by side, from (row, column) on. */
static void copy_rows(const struct matrix *m, int64_t row, int64_t rows, int64_t column, int64_t columns, float *to,
                      int64_t stride)
{
    const float *from = m->data + row * m->stride + column;
    for (int64_t r = 0; r < rows; r++, from += m->stride, to += stride) {
        for (int64_t c = 0; c < columns; c += 16) __builtin_prefetch(from + AHEAD * m->stride + c);
        memcpy(to, from, (size_t)columns * sizeof *to);
    }
}

static void pack_rows(const void *of, const struct block *part, float *to, int64_t stride)
{
    const struct matrix *a = &((const struct matrix_product *)of)->a;
    if (a->transposed)
        copy_rows(a, part->term, part->terms, part->row, part->rows, to, stride);
    else
        copy_rows(a, part->row, part->rows, part->term, part->terms, to, stride);
}

/* Zeros the columns that the last panel lacks. */
static void clear_columns(const struct block *part, float *to, int64_t distance)
{
    const int64_t last = part->columns % PANEL;
    to += part->columns / PANEL * distance + last;
    for (int64_t t = 0; t < part->terms && last > 0; t++)
        memset(to + t * PANEL, 0, (size_t)(PANEL - last) * sizeof *to);
}

/* Of rows that hold a column's terms; STEP of them at a time, which are a line of the cache. */
static void pack_transposed(const struct matrix *b, const struct block *part, float *to, int64_t distance)
{
    enum { STEP = 16 };
    for (int64_t c = 0; c < part->columns; c += PANEL, to += distance)
        for (int64_t t = 0; t < part->terms; t += STEP)
            for (int64_t i = 0; i < lesser(PANEL, part->columns - c); i++) {
                const float *from = b->data + (part->column + c + i) * b->stride + part->term + t;
                const int64_t steps = lesser(STEP, part->terms - t);
                for (int64_t k = 0; k < steps; k++) to[(t + k) * PANEL + i] = from[k];
            }
}

static void pack_direct(const struct matrix *b, const struct block *part, float *to, int64_t distance)
{
    const float *from = b->data + part->term * b->stride + part->column;
    const int64_t whole = part->columns / PANEL, rest = part->columns % PANEL;
    for (int64_t t = 0; t < part->terms; t++, from += b->stride, to += PANEL) {
        for (int64_t p = 0; p < whole; p++) {
            __builtin_prefetch(from + AHEAD * b->stride + p * PANEL);
            if (LANES == 16) __builtin_prefetch(from + AHEAD * b->stride + p * PANEL + LANES);
            lanes_store(to + p * distance, lanes_load(from + p * PANEL));
            lanes_store(to + p * distance + LANES, lanes_load(from + p * PANEL + LANES));
        }
        if (rest > 0) memcpy(to + whole * distance, from + whole * PANEL, (size_t)rest * sizeof *to);
    }
}

static void pack_columns(const void *of, const struct block *part, float *to, int64_t distance)
{
    const struct matrix *b = &((const struct matrix_product *)of)->b;
    if (b->transposed)
        pack_transposed(b, part, to, distance);
    else
        pack_direct(b, part, to, distance);
    clear_columns(part, to, distance);
}

/* Of rows of a stored matrix, from (row, column) on. */
static bool find_lines(const float *data, int64_t stride, int64_t row, int64_t rows, int64_t column, int64_t columns,
                       int64_t lines, int64_t *number, struct stream *stream)
{
    int64_t line, first;
    if (!stream_place(ratio_up(columns, SKEW), rows, lines, number, &line, &first)) return false;
    *stream = (struct stream){data + (row + first) * stride + column + line * SKEW, stride};
    return true;
}

static struct stream stream(const void *of, const struct block *part, int64_t lines, int64_t number)
{
    const struct matrix_product *m = of;
    const struct block *p = part;
    struct stream found = {NULL};
    if (m->a.transposed) {
        if (!find_lines(m->a.data, m->a.stride, p->term, p->terms, p->row, p->rows, lines, &number, &found) &&
            !m->b.transposed)
            find_lines(m->b.data, m->b.stride, p->term, p->terms, p->column, p->columns, lines, &number, &found);
    } else if (!find_lines(m->a.data, m->a.stride, p->row, p->rows, p->term, p->terms, lines, &number, &found) &&
               p->term == 0 && !m->turned) {
        find_lines(m->c, m->stride, p->row, p->rows, p->column, p->columns, lines, &number, &found);
    }
    return found;
}

static void result(const void *of, const struct block *part, const float *sums, int64_t stride)
{
    const struct matrix_product *m = of;
    for (int64_t r = 0; r < part->rows; r++)
        for (int64_t c = 0; c < part->columns; c += LANES) {
            const int64_t count = lesser(LANES, part->columns - c), column = part->column + c;
            float *to = m->c + (part->row + r) * m->stride + column;
            lanes s = lanes_load_part(sums + r * stride + c, count);
            if (m->add) s = lanes_load_part(to, count) + s;
            s += m->bias != NULL ? lanes_load_part(m->bias + column, count) : (lanes){0};
            if (m->relu) s = lanes_rectified(s);
            lanes_store_part(to, s, count);
        }
}

/* Of the transpose; rows of c are written 16 floats at a time. */
static void result_turned(const void *of, const struct block *part, const float *sums, int64_t stride)
{
    enum { STEP = 16 };
    const struct matrix_product *m = of;
    for (int64_t first = 0; first < part->rows; first += STEP)
        for (int64_t c = 0; c < part->columns; c++) {
            float *to = m->c + (part->column + c) * m->stride + part->row;
            for (int64_t r = first; r < lesser(first + STEP, part->rows); r++) {
                const float s = sums[r * stride + c] + (m->bias != NULL ? m->bias[part->row + r] : 0.0f);
                to[r] = m->relu && s <= 0.0f ? 0.0f : s;
            }
        }
}

struct product matrix_product(int64_t rows, int64_t columns, int64_t terms, struct matrix a, struct matrix b,
                              struct matrix_product *of)
{
    if (of->turned) {
        of->a = b, of->b = a;
        of->a.transposed = !of->a.transposed, of->b.transposed = !of->b.transposed;
    } else {
        of->a = a, of->b = b;
    }
    return (struct product){.rows = of->turned ? columns : rows,
                            .columns = of->turned ? rows : columns,
                            .terms = terms,
                            .by_term = of->a.transposed,
                            .pack_rows = pack_rows,
                            .pack_columns = pack_columns,
                            .stream = stream,
                            .result = of->turned ? result_turned : result};
}
