#include "batch_norm_pieces.h"

#include <omp.h>

#include "element_loops.h"

enum {
    CHUNK = 128,                     /* floats that several rows of few channels fill */
    PIECE = 32 * 1024,               /* floats */
    ROWS_LEAST = 64,                 /* of a piece */
    BAND = 128,                      /* channels that are computed together where their rows stay in the cache */
    BAND_MOST = 448 * 1024,          /* floats of a band that passes read again from the second-level cache */
    SIGN_ROWS = SIGN_GROUP / VECTOR, /* rows of whole vectors that fill groups of sign bits */
};

void batch_norm_divide(struct batch_norm *b, const struct extent *x)
{
    b->samples = x->batch;
    b->channels = shape_width(&x->shape);
    b->pixels = x->elements / b->channels;
    b->rows = x->batch * b->pixels;
    b->turns = b->channels < CHUNK ? CHUNK / b->channels : 1;
    b->piece_rows = PIECE / b->channels > ROWS_LEAST ? PIECE / b->channels : ROWS_LEAST;
    b->pieces = ratio_up(b->rows, b->piece_rows);
    b->signs_with_y = b->channels % (b->channels <= CHUNK_MOST ? VECTOR : SIGN_GROUP) == 0;
    b->stream = x->count >= STREAM_LEAST;
}

/* Rows [from, to) of at most so many channels from channel on. */
static struct piece piece_of(const struct batch_norm *b, int64_t channel, int64_t most, int64_t from, int64_t to)
{
    const int64_t width = lesser(most, b->channels - channel);
    return (struct piece){.b = b,
                          .channel = channel,
                          .width = width,
                          .from = from,
                          .to = to,
                          .at = from * b->channels + channel,
                          .step = b->turns * b->channels,
                          .chunks = (to - from) / b->turns,
                          .lanes = b->turns * width,
                          .rest = (to - from) % b->turns * width};
}

static void run_piece(const struct batch_norm *b, const struct kernel_args *args, piece_pass *pass, int64_t number,
                      int64_t channel, int64_t most)
{
    const int64_t from = number * b->piece_rows;
    struct piece p = piece_of(b, channel, most, from, lesser(from + b->piece_rows, b->rows));
    p.number = number;
    pass(&p, args);
    stream_end();
}

/* Where a band's values stay in the second-level cache, the last pass finds them there: band by band. */
static void run_bands(const struct batch_norm *b, const struct kernel_args *args, const struct passes *passes)
{
#pragma omp parallel for schedule(static)
    for (int64_t c = 0; c < b->channels; c += BAND) {
        for (int64_t i = 0; i < b->pieces; i++) run_piece(b, args, passes->first, i, c, BAND);
        passes->merge(b, args, c, lesser(c + BAND, b->channels));
        for (int64_t i = 0; i < b->pieces; i++) run_piece(b, args, passes->last, i, c, BAND);
    }
}

/* A pass alone reads and writes in the order of memory. */
static void run_alone(const struct batch_norm *b, const struct kernel_args *args, piece_pass *pass)
{
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t i = 0; i < b->pieces; i++)
        for (int64_t c = 0; c < b->channels; c += CHUNK_MOST) run_piece(b, args, pass, i, c, CHUNK_MOST);
}

/* The same by rows of a sample that fill whole groups of sign bits. */
static void run_signs(const struct batch_norm *b, const struct kernel_args *args, piece_pass *pass)
{
    const int64_t rows = b->piece_rows / SIGN_ROWS * SIGN_ROWS;
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t n = 0; n < b->samples; n++)
        for (int64_t row = 0; row < b->pixels; row += rows) {
            const int64_t from = n * b->pixels + row, to = from + lesser(rows, b->pixels - row);
            for (int64_t c = 0; c < b->channels; c += CHUNK_MOST) {
                const struct piece p = piece_of(b, c, CHUNK_MOST, from, to);
                pass(&p, args);
            }
            stream_end();
        }
}

bool batch_norm_caches(const struct batch_norm *b, int tensors)
{
    return b->rows * lesser(BAND, b->channels) * tensors <= BAND_MOST &&
           ratio_up(b->channels, BAND) >= omp_get_max_threads();
}

void batch_norm_run(const struct batch_norm *b, const struct kernel_args *args, const struct passes *passes)
{
    if (passes->first && passes->last && !args->save && batch_norm_caches(b, passes->tensors)) {
        run_bands(b, args, passes);
        return;
    }
    if (passes->first) {
        run_alone(b, args, passes->first);
#pragma omp parallel for schedule(static)
        for (int64_t c = 0; c < b->channels; c += BAND) passes->merge(b, args, c, lesser(c + BAND, b->channels));
    }
    if (!passes->last) return;
    if (args->save && b->signs_with_y)
        run_signs(b, args, passes->last);
    else
        run_alone(b, args, passes->last);
}
