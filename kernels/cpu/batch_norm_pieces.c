#include "batch_norm_pieces.h"

#include <omp.h>

#include "element_loops.h"

enum {
    PIECE = 32 * 1024,       /* floats */
    GROUP_MOST = 448 * 1024, /* floats of a group that passes read again from the second-level cache */
    SPAN = 32 * 1024,        /* floats; whole words of sign bits */
};

void batch_norm_divide(struct batch_norm *b, const struct extent *x)
{
    const int64_t pixels = shape_elements(&x->shape) / shape_width(&x->shape), block = order_block(x->layout);
    const bool blocked = block > 1;
    b->layout = (enum order)x->layout;
    b->samples = x->batch;
    b->channels = shape_width(&x->shape);
    b->padded = x->elements / pixels;
    b->rows = x->batch * pixels;
    b->groups = blocked ? b->padded / block : ratio_up(b->channels, LANES);
    b->width = blocked ? block : ratio_up(b->channels, b->groups);
    b->stride = blocked ? block : b->channels;
    b->run = blocked ? pixels : b->rows;
    b->next_run = x->elements;
    b->next_group = blocked ? pixels * block : b->width;
    b->piece_rows = PIECE / (blocked ? BLOCK_MOST : b->width);
    b->pieces = ratio_up(b->rows, b->piece_rows);
    b->spans = blocked && b->next_group % VECTOR == 0;
    b->stream = x->count >= STREAM_LEAST;
}

/* Rows [from, to) of a group. */
static struct piece piece_of(const struct batch_norm *b, int64_t group, int64_t from, int64_t to)
{
    const int64_t channel = group * b->width, width = lesser(b->width, b->padded - channel);
    const int64_t turns = order_block(b->layout) > 1 ? LANES / BLOCK_MOST : b->stride == width ? LANES / width : 1;
    return (struct piece){.b = b,
                          .start = group * b->next_group,
                          .channel = channel,
                          .width = width,
                          .turns = turns,
                          .lanes = turns * width,
                          .from = from,
                          .to = to};
}

static void merge_group(const struct batch_norm *b, const struct kernel_args *args, const struct passes *passes,
                        int64_t group)
{
    passes->merge(b, args, group * b->width, lesser((group + 1) * b->width, b->channels));
}

static void run_piece(const struct batch_norm *b, const struct kernel_args *args, piece_pass *pass, int64_t i)
{
    const int64_t number = i / b->groups, from = number * b->piece_rows;
    struct piece p = piece_of(b, i % b->groups, from, lesser(from + b->piece_rows, b->rows));
    p.number = number;
    pass(&p, args);
    stream_end();
}

/* Where a group's values stay in the second-level cache, the last pass finds them there: group by group. */
static void run_groups(const struct batch_norm *b, const struct kernel_args *args, const struct passes *passes)
{
    const int64_t pieces = b->groups * b->pieces;
#pragma omp parallel for schedule(static)
    for (int64_t group = 0; group < b->groups; group++) {
        for (int64_t i = group; i < pieces; i += b->groups) run_piece(b, args, passes->first, i);
        merge_group(b, args, passes, group);
        for (int64_t i = group; i < pieces; i += b->groups) run_piece(b, args, passes->last, i);
    }
}

/* Floats [at, end) of a sample, which may belong to several groups. */
static void run_span(const struct batch_norm *b, const struct kernel_args *args, piece_pass *pass, int64_t sample,
                     int64_t at, int64_t end)
{
    for (int64_t next; at < end; at = next) {
        const int64_t group = at / b->next_group, row = sample * b->run - group * b->run;
        next = lesser(end, (group + 1) * b->next_group);
        const struct piece p = piece_of(b, group, row + at / b->width, row + next / b->width);
        pass(&p, args);
    }
    stream_end();
}

/* A pass alone reads and writes in the order of memory. */
static void run_alone(const struct batch_norm *b, const struct kernel_args *args, piece_pass *pass)
{
    const int64_t spans = ratio_up(b->next_run, SPAN);
    if (b->spans) {
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < b->samples * spans; i++) {
            const int64_t at = i % spans * SPAN;
            run_span(b, args, pass, i / spans, at, lesser(at + SPAN, b->next_run));
        }
        return;
    }
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < b->groups * b->pieces; i++) run_piece(b, args, pass, i);
}

bool batch_norm_caches(const struct batch_norm *b, int tensors)
{
    return b->rows * b->width * tensors <= GROUP_MOST && b->groups >= omp_get_max_threads();
}

void batch_norm_run(const struct batch_norm *b, const struct kernel_args *args, const struct passes *passes)
{
    const int64_t pieces = b->groups * b->pieces;
    if (passes->first && passes->last && !args->save && batch_norm_caches(b, passes->tensors)) {
        run_groups(b, args, passes);
        return;
    }
    if (passes->first) {
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < pieces; i++) run_piece(b, args, passes->first, i);
#pragma omp parallel for schedule(static)
        for (int64_t group = 0; group < b->groups; group++) merge_group(b, args, passes, group);
    }
    if (passes->last) run_alone(b, args, passes->last);
}
