/* From token ids to vectors (Devlin et al., 2018): the sum of the rows of a token, of its position and of its segment,
 * each from a learnt table; without positions or segments, of the others. Input is the batch of a text data set, {3,
 * T}: ids, segments, mask; output {T, units}.
 *
 * A table's gradient is dense: the sum of dy over the tokens that read a row, 0 where none did. An id without a row in
 * its table reads row 0, so that no number in the batch makes a kernel read outside. */
#include "model/reference.h"
#include "numerics/token_batch.h"

enum { PIECE = 64 }; /* columns summed at a time */

struct settings {
    int64_t units;                           /* output width */
    int64_t vocabulary, positions, segments; /* rows of the tables */
};

static const struct setting keys[] = {
    {SETTING(units), .type = SETTING_INT, .min = 1, .max = INT32_MAX, .doc = "output width"},
    {SETTING(vocabulary), .type = SETTING_INT, .min = 1, .max = 1 << 24, .doc = "how many words there are"},
    {SETTING(positions), .type = SETTING_INT, .max = 1 << 24,
     .doc = "most tokens a sequence may have; 0: no positions"},
    {SETTING(segments), .type = SETTING_INT, .max = 1 << 24, .preset = "2", .doc = "how many segments; 0: none"},
    {.key = NULL}};

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    char text[96];
    const struct settings *s = settings;
    TRY(tokens_expected(&inputs[0]));
    if (s->positions && inputs[0].dim[1] > s->positions)
        return fail(ST_SPEC, "has %lld positions, its input %s has %lld tokens", (long long)s->positions,
                    shape_print(&inputs[0], text), (long long)inputs[0].dim[1]);
    *output = (struct shape){2, {inputs[0].dim[1], s->units}};
    return ST_OK;
}

enum table { WORD, POSITION, SEGMENT, TABLES };

/* The tables that have rows; returns how many. */
static int tables_of(const struct settings *s, enum table tables[TABLES], int64_t rows[TABLES])
{
    const int64_t all[] = {s->vocabulary, s->positions, s->segments};
    int count = 0;
    for (enum table t = 0; t < TABLES; t++)
        if (all[t]) tables[count] = t, rows[count++] = all[t];
    return count;
}

static int parameters(const void *settings, const struct shape *input,
                      struct parameter_definition definitions[NODE_PARAMETERS_MAX])
{
    static const char *const names[] = {"word", "position", "segment"};
    const struct settings *s = settings;
    enum table tables[TABLES];
    int64_t rows[TABLES];
    const int count = tables_of(s, tables, rows);
    (void)input;
    for (int i = 0; i < count; i++)
        definitions[i] =
            (struct parameter_definition){names[tables[i]], {2, {rows[i], s->units}}, INIT_NORMAL, rows[i], s->units};
    return count;
}

static struct flops flops(const void *settings, const struct shape *input, const struct shape *output)
{
    (void)settings, (void)input;
    const double all = (double)shape_elements(output);
    return (struct flops){2 * all, 3 * all, 0};
}

/* The row of a table, which has so many, that token t of sample n reads. */
static int64_t row_of(const struct reference *r, const float *x, int64_t n, int64_t t, enum table table, int64_t rows)
{
    const int64_t tokens = r->x.dim[1];
    const float *sample = x + n * r->x_elements;
    if (table == POSITION) return t;
    return token_row(sample[(table == WORD ? TOKEN_IDS : TOKEN_SEGMENTS) * tokens + t], rows);
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t tokens = r->y.dim[0], width = r->y.dim[1];
    enum table tables[TABLES];
    int64_t rows[TABLES];
    const int count = tables_of(r->settings, tables, rows);
    float *y = args->y;
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t t = 0; t < tokens; t++) {
            const float *from[TABLES];
            for (int k = 0; k < count; k++)
                from[k] = args->parameters[k] + row_of(r, args->x[0], n, t, tables[k], rows[k]) * width;
            for (int64_t i = 0; i < width; i++) {
                double sum = 0;
                for (int k = 0; k < count; k++) sum += from[k][i];
                *y++ = (float)sum;
            }
        }
    return ST_OK;
}

/* One of the tables: its number among the parameters, and its rows. */
struct of_table {
    enum table table;
    int number;
    int64_t rows;
};

/* The gradient of one row, columns [first, first + count): over all tokens that read it. */
static void row_gradient(const struct reference *r, const struct kernel_args *args, struct of_table of, int64_t row,
                         int64_t first, int64_t count)
{
    const int64_t tokens = r->y.dim[0], width = r->y.dim[1];
    double sum[PIECE] = {0};
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t t = 0; t < tokens; t++) {
            const float *dy = (const float *)args->dy + (n * tokens + t) * width + first;
            const bool reads = row_of(r, args->x[0], n, t, of.table, of.rows) == row;
            for (int64_t i = 0; reads && i < count; i++) sum[i] += dy[i];
        }
    float *gradient = args->gradients[of.number] + row * width + first;
    for (int64_t i = 0; i < count; i++) gradient[i] = (args->adds >> of.number & 1 ? gradient[i] : 0) + (float)sum[i];
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const int64_t width = r->y.dim[1];
    enum table tables[TABLES];
    int64_t rows[TABLES];
    const int count = args->parts & PART_PARAMS ? tables_of(r->settings, tables, rows) : 0;
    for (int k = 0; k < count; k++)
        for (int64_t row = 0; row < rows[k]; row++)
            for (int64_t first = 0; first < width; first += PIECE)
                row_gradient(r, args, (struct of_table){tables[k], k, rows[k]}, row, first,
                             width - first < PIECE ? width - first : PIECE);
    return ST_OK;
}

const struct layer layer_embedding = {.name = "embedding",
                                      .doc = "vectors of tokens, positions and segments, added",
                                      .inputs = 1,
                                      LAYER_SETTINGS,
                                      .infer = infer,
                                      .parameters = parameters,
                                      .flops = flops,
                                      .reference = REFERENCE_KERNEL_ADDS(forward, backward),
                                      .footprint = {.reads = {READS_X, 0}}};
