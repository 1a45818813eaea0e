/* Multi-head scaled dot-product attention (Vaswani et al., 2017) on one fused value {T, D + 2 E} of queries, keys and
 * values, the heads of each side by side: `heads` of queries, of width d = D / heads, and `kv_heads` of keys and
 * values, E = kv_heads d, each for heads / kv_heads neighbouring heads of queries (Ainslie et al., "GQA", 2023); as a
 * rule as many, and E = D. For each head of queries
 *
 *     P = softmax(Q K^T / sqrt d) over the keys that are tokens,   y = drop(P) V
 *
 * A key that is padding (the mask of value 0; images have none) has probability 0, and with causal every key after its
 * query, so that a decoder sees the past alone; where a query sees no key at all, every probability is 0 and so is y.
 * With rope the pair (2 i, 2 i + 1) of the t-th query and key of each head is first turned by the angle t 10000^(-2 i /
 * d) (Su et al., "RoFormer", 2021). Dropout's element is (head * T + query) * T + key of the sample.
 *
 * Saved tensors: P before dropout; the mask is drawn again. With save: nothing the backward computes P again with the
 * forward's arithmetic, so both settings give equal bits. The gradients, R being drop's factor, 0 or 1 / (1 - rate):
 *
 *     dV = (R P)^T dy,   dP = R (dy V^T),   dS = P (dP - rowsum(P dP)) / sqrt d,   dQ = dS K,   dK = dS^T Q
 *
 * dQ and dK are turned back. Where several heads of queries read a key, the shares of its gradients are rounded and
 * then added in float, in the order of the heads. */
#include "model/reference.h"

#include <math.h>
#include <string.h>

#include "numerics/token_batch.h"

struct settings {
    int64_t heads, kv_heads; /* kv_heads 0: heads */
    bool causal, rope;
    double rate; /* probability that an element of P is dropped */
    int save;    /* index of save_words */
};

enum { SAVE_PROBABILITIES, SAVE_NOTHING };
static const char *const save_words[] = {"probabilities", "nothing", NULL};

static const struct setting keys[] = {
    {SETTING(heads), .type = SETTING_INT, .min = 1, .max = 1 << 16, .doc = "parts of the width that attend apart"},
    {SETTING(kv_heads), .type = SETTING_INT, .max = 1 << 16, .preset = "0",
     .doc = "heads of keys and values, a divisor of heads; 0: heads"},
    {SETTING(rope), .type = SETTING_BOOL, .preset = "false", .doc = "queries and keys are turned by their positions"},
    {SETTING(causal), .type = SETTING_BOOL, .preset = "false", .doc = "a token attends to no later one"},
    {SETTING(rate), .type = SETTING_REAL, .max = 0.999999, .preset = "0",
     .doc = "probability that an attention probability is dropped"},
    {SETTING(save), .type = SETTING_CHOICE, .preset = "probabilities", .values = save_words,
     .doc = "kept for the backward; nothing: it makes the probabilities again"},
    {.key = NULL}};

static int64_t kv_heads_of(const struct settings *s) { return s->kv_heads ? s->kv_heads : s->heads; }

/* The width of a head. */
static int64_t width_of(const struct settings *s, const struct shape *x)
{
    return x->dim[1] / (s->heads + 2 * kv_heads_of(s));
}

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    char text[96];
    const struct settings *s = settings;
    const struct shape *x = &inputs[0];
    const bool masked = inputs[1].rank != 3;
    TRY(sequence_expected(x));
    if (masked) TRY(tokens_expected(&inputs[1]));
    if (masked && x->dim[0] != inputs[1].dim[1])
        return fail(ST_SPEC, "expects the batch's %lld tokens, of which some may be padding; its input is %s",
                    (long long)inputs[1].dim[1], shape_print(x, text));
    if (s->heads % kv_heads_of(s))
        return fail(ST_SPEC, "kv_heads is %lld; expected a divisor of its %lld heads", (long long)s->kv_heads,
                    (long long)s->heads);
    if (x->dim[1] % (s->heads + 2 * kv_heads_of(s)))
        return fail(ST_SPEC,
                    "expects queries, keys and values of each token side by side: %lld heads and twice %lld of keys "
                    "and values, so a multiple of %lld wide; its input is %s",
                    (long long)s->heads, (long long)kv_heads_of(s), (long long)(s->heads + 2 * kv_heads_of(s)),
                    shape_print(x, text));
    if (s->rope && width_of(s, x) % 2)
        return fail(ST_SPEC, "rope turns pairs, and a head is %lld wide; expected an even width",
                    (long long)width_of(s, x));
    *output = (struct shape){2, {x->dim[0], s->heads * width_of(s, x)}};
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
    const int64_t tokens = r->x.dim[0], width = width_of(s, &r->x);
    const size_t scratch = (size_t)(tokens * tokens) * (sizeof(double) + sizeof(float) + 1) +
                           (size_t)(2 * (tokens + 1) * width) * sizeof(double);
    *footprint = (struct footprint){
        .saved = s->save == SAVE_NOTHING ? 0 : (size_t)(r->batch * block_elements(s, &r->x)) * sizeof(float),
        .forward_scratch = scratch,
        .backward_scratch = {0, scratch},
        .reads = {0, s->save == SAVE_NOTHING ? READS_X : READS_X | READS_SAVED}};
}

static int64_t heads_of(const struct reference *r) { return ((const struct settings *)r->settings)->heads; }

/* A head of queries of a sample, and its T x T blocks. */
struct head {
    int64_t tokens, width, stride, out; /* stride: of rows of qkv, out: of y */
    int64_t at[3], y;                   /* where the first rows of q, k and v start in qkv, and those of y */
    bool causal, rope, adds;            /* adds: to the gradients of keys and values, that a head before it wrote */
    const float *mask;                  /* NULL: every key is a token */
    double scale, factor;               /* 1 / sqrt d; R where an element is kept */
    double *slope;                      /* dS; first the scores */
    double *turned[2];                  /* q and k {T, d}, turned */
    double *sums;                       /* of a token's gradients of q and k */
    float *p;
    uint8_t *keep;
};

enum { Q, K, V };

/* Turns the pairs of a row of position t; sign -1: back. */
static void rotate(double *row, int64_t width, int64_t t, double sign)
{
    for (int64_t c = 0; c < width; c += 2) {
        const double angle = (double)t * pow(10000, -(double)c / (double)width), a = row[c], b = row[c + 1];
        row[c] = a * cos(angle) - sign * b * sin(angle);
        row[c + 1] = b * cos(angle) + sign * a * sin(angle);
    }
}

static void take_rows(const struct head *h, const float *x, int which)
{
    for (int64_t t = 0; t < h->tokens; t++) {
        double *row = h->turned[which] + t * h->width;
        for (int64_t c = 0; c < h->width; c++) row[c] = x[h->at[which] + t * h->stride + c];
        if (h->rope) rotate(row, h->width, t, 1);
    }
}

/* Where its parts lie in scratch. */
static void cut_scratch(struct head *h, void *scratch)
{
    const int64_t block = h->tokens * h->tokens, rows = h->tokens * h->width;
    h->slope = scratch;
    h->turned[Q] = h->slope + block;
    h->turned[K] = h->turned[Q] + rows;
    h->sums = h->turned[K] + rows;
    h->p = (void *)(h->sums + 2 * h->width);
    h->keep = (void *)(h->p + block);
}

/* saved: where P is, or will be written; NULL: in scratch. */
static struct head head_at(const struct reference *r, const struct kernel_args *args, float *saved, int64_t n,
                           int64_t h)
{
    const struct settings *s = r->settings;
    const int64_t tokens = r->x.dim[0], heads = s->heads, kv = kv_heads_of(s), block = tokens * tokens;
    const int64_t group = heads / kv, width = width_of(s, &r->x), first = n * r->x_elements;
    const bool drops = kernel_drops(args, s->rate);
    struct head head = {
        .tokens = tokens,
        .width = width,
        .stride = r->x.dim[1],
        .out = r->y.dim[1],
        .at = {first + h * width, first + (heads + h / group) * width, first + (heads + kv + h / group) * width},
        .y = n * r->y_elements + h * width,
        .causal = s->causal,
        .rope = s->rope,
        .adds = h % group > 0,
        .mask = r->second_rank == 3 ? NULL : (const float *)args->x[1] + (n * TOKEN_ROWS + TOKEN_MASK) * tokens,
        .scale = 1 / sqrt((double)width),
        .factor = drops ? 1 / (1 - s->rate) : 1};
    cut_scratch(&head, args->scratch);
    if (saved) head.p = saved + (n * heads + h) * block;
    take_rows(&head, args->x[0], Q), take_rows(&head, args->x[0], K);
    memset(head.keep, 1, (size_t)block);
    if (drops) rng_keep(&args->draw, s->rate, heads * block, n, h * block, block, head.keep);
    return head;
}

static bool sees(const struct head *h, int64_t query, int64_t key)
{
    return (!h->mask || h->mask[key] > 0) && (!h->causal || key <= query);
}

static double score_of(const struct head *h, int64_t query, int64_t key)
{
    const double *q = h->turned[Q] + query * h->width, *k = h->turned[K] + key * h->width;
    double sum = 0;
    for (int64_t c = 0; c < h->width; c++) sum += q[c] * k[c];
    return sum * h->scale;
}

static void make_probabilities(const struct head *h)
{
    for (int64_t i = 0; i < h->tokens; i++) {
        double *score = h->slope, most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < h->tokens; j++) {
            score[j] = score_of(h, i, j);
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
                sum += kept(h, at) * h->p[at] * x[h->at[V] + j * h->stride + c];
            }
            y[h->y + i * h->out + c] = (float)sum;
        }
}

static enum status forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t h = 0; h < heads_of(r); h++) {
            const struct head head = head_at(r, args, args->save ? args->saved : NULL, n, h);
            make_probabilities(&head);
            attend(&head, args->x[0], args->y);
        }
    return ST_OK;
}

static void make_slopes(const struct head *h, const float *x, const float *dy)
{
    for (int64_t i = 0; i < h->tokens; i++) {
        double *slope = h->slope + i * h->tokens, total = 0;
        const float *p = h->p + i * h->tokens, *dyi = dy + h->y + i * h->out;
        for (int64_t j = 0; j < h->tokens; j++) {
            double sum = 0;
            for (int64_t c = 0; c < h->width; c++) sum += (double)dyi[c] * x[h->at[V] + j * h->stride + c];
            slope[j] = kept(h, i * h->tokens + j) * sum;
            total += p[j] * slope[j];
        }
        for (int64_t j = 0; j < h->tokens; j++) slope[j] = p[j] * (slope[j] - total) * h->scale;
    }
}

/* A number of a gradient of keys or values. */
static void put(const struct head *h, float *dx, double sum) { *dx = (h->adds ? *dx : 0) + (float)sum; }

/* dq, dk and dv of token t. */
static void token_gradients(const struct head *h, const float *dy, int64_t t, float *dx)
{
    double *dq = h->sums, *dk = h->sums + h->width;
    float *row = dx + t * h->stride;
    for (int64_t c = 0; c < h->width; c++) {
        double q = 0, k = 0, v = 0;
        for (int64_t i = 0; i < h->tokens; i++) {
            const int64_t along = t * h->tokens + i, across = i * h->tokens + t;
            q += h->slope[along] * h->turned[K][i * h->width + c];
            k += h->slope[across] * h->turned[Q][i * h->width + c];
            v += kept(h, across) * h->p[across] * dy[h->y + i * h->out + c];
        }
        dq[c] = q, dk[c] = k;
        put(h, row + h->at[V] + c, v);
    }
    if (h->rope) rotate(dq, h->width, t, -1), rotate(dk, h->width, t, -1);
    for (int64_t c = 0; c < h->width; c++) {
        row[h->at[Q] + c] = (float)dq[c];
        put(h, row + h->at[K] + c, dk[c]);
    }
}

static enum status backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    const float *x = args->x[0], *dy = args->dy;
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t h = 0; h < heads_of(r); h++) {
            const struct head head = head_at(r, args, args->saved, n, h);
            if (!args->saved) make_probabilities(&head);
            make_slopes(&head, x, dy);
            for (int64_t t = 0; t < head.tokens; t++) token_gradients(&head, dy, t, args->dx[0]);
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
