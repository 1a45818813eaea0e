/* Multi-head scaled dot-product attention (Vaswani et al., 2017) on one fused value {T, 3D} of queries, keys and
 * values, the heads of each side by side. For each head, of width d = D / heads:
 *
 *     P = softmax(Q K^T / sqrt d) over the keys that are tokens,   y = drop(P) V
 *
 * A key that is padding (the mask of value 0) has probability 0, and with causal every key after its query, so that a
 * decoder sees the past alone; where a query sees no key at all, every probability is 0 and so is y. Dropout's element
 * is (head * T + query) * T + key of the sample.
 *
 * Saved tensors: P before dropout; the mask is drawn again. With save: nothing the backward computes P again with the
 * forward's arithmetic, so both settings give equal bits. The gradients, R being drop's factor, 0 or 1 / (1 - rate):
 *
 *     dV = (R P)^T dy,   dP = R (dy V^T),   dS = P (dP - rowsum(P dP)) / sqrt d,   dQ = dS K,   dK = dS^T Q
 */
#include "model/reference.h"

#include <math.h>
#include <string.h>

#include "numerics/token_batch.h"

struct settings {
    int64_t heads;
    bool causal;
    double rate; /* probability that an element of P is dropped */
    int save;    /* index of save_words */
};

enum { SAVE_PROBABILITIES, SAVE_NOTHING };
static const char *const save_words[] = {"probabilities", "nothing", NULL};

static const struct setting keys[] = {
    {SETTING(heads), .type = SETTING_INT, .min = 1, .max = 1 << 16, .doc = "parts of the width that attend apart"},
    {SETTING(causal), .type = SETTING_BOOL, .preset = "false", .doc = "a token attends to no later one"},
    {SETTING(rate), .type = SETTING_REAL, .max = 0.999999, .preset = "0",
     .doc = "probability that an attention probability is dropped"},
    {SETTING(save), .type = SETTING_CHOICE, .preset = "probabilities", .values = save_words,
     .doc = "kept for the backward; nothing: it makes the probabilities again"},
    {.key = NULL}};

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    char text[96];
    const int64_t heads = ((const struct settings *)settings)->heads;
    const struct shape *x = &inputs[0];
    TRY(tokens_expected(&inputs[1]));
    if (x->rank != 2 || x->dim[0] != inputs[1].dim[1] || x->dim[1] % (3 * heads))
        return fail(ST_SPEC,
                    "expects queries, keys and values of %lld tokens side by side, each a multiple of its %lld heads "
                    "wide; its input is %s",
                    (long long)inputs[1].dim[1], (long long)heads, shape_print(x, text));
    *output = (struct shape){2, {x->dim[0], x->dim[1] / 3}};
    return ST_OK;
}

/* Elements of every head's T x T block, -1: too many. */
static int64_t block_elements(const struct settings *s, const struct shape *input)
{
    return shape_elements(&(struct shape){3, {s->heads, input->dim[0], input->dim[0]}});
}

static int64_t draws(const void *settings, const struct shape *input)
{
    const struct settings *s = settings;
    const int64_t elements = block_elements(s, input);
    return s->rate > 0 || elements < 0 ? elements : 0;
}

/* Two products forward, four backward, over T x T x D each; a softmax of some 5 operations an element forward and of 4
 * backward. What save: nothing computes again counts; with causal, pairs of a query and a key that it sees alone. */
static struct flops flops(const void *settings, const struct shape *input, const struct shape *output)
{
    const struct settings *s = settings;
    const double tokens = (double)input->dim[0], seen = s->causal ? (tokens + 1) / 2 : tokens; /* a query, on average */
    const double product = 2 * (double)shape_elements(output) * seen;
    const double block = (double)s->heads * tokens * seen;
    const bool again = s->save == SAVE_NOTHING;
    return (struct flops){2 * product + 5 * block, 0, (4 + again) * product + (4 + 5 * again) * block};
}

static void measure(const struct reference *r, struct footprint *footprint)
{
    const struct settings *s = r->settings;
    const size_t scratch = (size_t)(r->x.dim[0] * r->x.dim[0]) * (sizeof(double) + sizeof(float) + 1);
    *footprint = (struct footprint){
        .saved = s->save == SAVE_NOTHING ? 0 : (size_t)(r->batch * block_elements(s, &r->x)) * sizeof(float),
        .forward_scratch = scratch,
        .backward_scratch = {0, scratch},
        .reads = {0, s->save == SAVE_NOTHING ? READS_X : READS_X | READS_SAVED}};
}

static int64_t heads_of(const struct reference *r) { return ((const struct settings *)r->settings)->heads; }

/* A head of a sample, and its T x T blocks. */
struct head {
    int64_t tokens, width, stride; /* stride: of rows of qkv */
    int64_t q, k, v, y;            /* where the first rows start in qkv and in y */
    bool causal;
    const float *mask;
    double scale, factor; /* 1 / sqrt d; R where an element is kept */
    double *slope;        /* dS; first the scores */
    float *p;
    uint8_t *keep;
};

/* saved: where P is, or will be written; NULL: in scratch. */
static struct head head_at(const struct reference *r, const struct kernel_args *args, float *saved, int64_t n,
                           int64_t h)
{
    const int64_t tokens = r->x.dim[0], width = r->y.dim[1], heads = heads_of(r), block = tokens * tokens;
    const struct settings *s = r->settings;
    const double rate = s->rate;
    struct head head = {.tokens = tokens, .width = width / heads, .stride = 3 * width, .causal = s->causal};
    head.q = n * r->x_elements + h * head.width;
    head.k = head.q + width;
    head.v = head.k + width;
    head.y = n * r->y_elements + h * head.width;
    head.mask = (const float *)args->x[1] + (n * TOKEN_ROWS + TOKEN_MASK) * tokens;
    head.scale = 1 / sqrt((double)head.width);
    head.slope = args->scratch;
    float *after = (void *)(head.slope + block);
    head.p = saved ? saved + (n * heads + h) * block : after;
    head.keep = (void *)(after + block);
    const bool drops = kernel_drops(args, rate);
    head.factor = drops ? 1 / (1 - rate) : 1;
    memset(head.keep, 1, (size_t)block);
    if (drops) rng_keep(&args->draw, rate, heads * block, n, h * block, block, head.keep);
    return head;
}

static double dot(const float *a, const float *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)a[i] * b[i];
    return sum;
}

static bool sees(const struct head *h, int64_t query, int64_t key)
{
    return h->mask[key] > 0 && (!h->causal || key <= query);
}

static void make_probabilities(const struct head *h, const float *x)
{
    for (int64_t i = 0; i < h->tokens; i++) {
        double *score = h->slope, most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < h->tokens; j++) {
            score[j] = dot(x + h->q + i * h->stride, x + h->k + j * h->stride, h->width) * h->scale;
            if (sees(h, i, j)) most = fmax(most, score[j]);
        }
        for (int64_t j = 0; j < h->tokens; j++) {
            score[j] = sees(h, i, j) ? exp(score[j] - most) : 0;
            sum += score[j];
        }
        for (int64_t j = 0; j < h->tokens; j++) h->p[i * h->tokens + j] = (float)(sum == 0 ? 0 : score[j] / sum);
    }
}

/* R of an element. */
static double kept(const struct head *h, int64_t at) { return h->keep[at] ? h->factor : 0; }

static void attend(const struct head *h, const float *x, float *y)
{
    for (int64_t i = 0; i < h->tokens; i++)
        for (int64_t c = 0; c < h->width; c++) {
            double sum = 0;
            for (int64_t j = 0; j < h->tokens; j++) {
                const int64_t at = i * h->tokens + j;
                sum += kept(h, at) * h->p[at] * x[h->v + j * h->stride + c];
            }
            y[h->y + i * (h->stride / 3) + c] = (float)sum;
        }
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t h = 0; h < heads_of(r); h++) {
            const struct head head = head_at(r, args, args->save ? args->saved : NULL, n, h);
            make_probabilities(&head, args->x[0]);
            attend(&head, args->x[0], args->y);
        }
    return ST_OK;
}

static void make_slopes(const struct head *h, const float *x, const float *dy)
{
    for (int64_t i = 0; i < h->tokens; i++) {
        double *slope = h->slope + i * h->tokens, total = 0;
        const float *p = h->p + i * h->tokens;
        for (int64_t j = 0; j < h->tokens; j++) {
            slope[j] =
                kept(h, i * h->tokens + j) * dot(dy + h->y + i * (h->stride / 3), x + h->v + j * h->stride, h->width);
            total += p[j] * slope[j];
        }
        for (int64_t j = 0; j < h->tokens; j++) slope[j] = p[j] * (slope[j] - total) * h->scale;
    }
}

/* dq, dk and dv of token t. */
static void token_gradients(const struct head *h, const float *x, const float *dy, int64_t t, float *dx)
{
    for (int64_t c = 0; c < h->width; c++) {
        double q = 0, k = 0, v = 0;
        for (int64_t i = 0; i < h->tokens; i++) {
            const int64_t along = t * h->tokens + i, across = i * h->tokens + t;
            q += h->slope[along] * x[h->k + i * h->stride + c];
            k += h->slope[across] * x[h->q + i * h->stride + c];
            v += kept(h, across) * h->p[across] * dy[h->y + i * (h->stride / 3) + c];
        }
        dx[h->q + t * h->stride + c] = (float)q;
        dx[h->k + t * h->stride + c] = (float)k;
        dx[h->v + t * h->stride + c] = (float)v;
    }
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *x = args->x[0], *dy = args->dy;
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t h = 0; h < heads_of(r); h++) {
            const struct head head = head_at(r, args, args->saved, n, h);
            if (!args->saved) make_probabilities(&head, x);
            make_slopes(&head, x, dy);
            for (int64_t t = 0; t < head.tokens; t++) token_gradients(&head, x, dy, t, args->dx[0]);
        }
    return ST_OK;
}

const struct layer layer_attention = {
    .name = "attention",
    .doc = "softmax(q k / sqrt(d)) v by heads, of the queries, keys and values in one row",
    .inputs = 2,
    .reads_batch = true,
    LAYER_SETTINGS,
    .infer = infer,
    .flops = flops,
    .draws = draws,
    .reference = REFERENCE_KERNEL(forward, backward),
    .measure = measure};
