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
 * then added in float, in the order of the heads.
 *
 * The kernel is cross_attention's, too, whose keys and values are a second input of a length of their own. */
#include "layers/attention.h"

#include <math.h>
#include <string.h>

#include "numerics/token_batch.h"

const char *const attention_save_words[] = {"probabilities", "nothing", NULL};

static const struct setting keys[] = {
    ATTENTION_HEADS,
    {ATTENTION(rope), .type = SETTING_BOOL, .preset = "false", .doc = "queries and keys are turned by their positions"},
    {ATTENTION(causal), .type = SETTING_BOOL, .preset = "false", .doc = "a token attends to no later one"},
    ATTENTION_KEPT,
    {.key = NULL}};

/* The width of a head. */
static int64_t width_of(const struct attention_settings *s, const struct shape *x)
{
    return x->dim[1] / (s->heads + 2 * kv_heads_of(s));
}

enum status attention_heads_expected(const struct attention_settings *s)
{
    if (s->heads % kv_heads_of(s) == 0) return ST_OK;
    return fail(ST_SPEC, "kv_heads is %lld; expected a divisor of its %lld heads", (long long)s->kv_heads,
                (long long)s->heads);
}

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    char text[96];
    const struct attention_settings *s = settings;
    const struct shape *x = &inputs[0];
    const bool masked = inputs[1].rank != 3;
    TRY(sequence_expected(x));
    if (masked) TRY(tokens_expected(&inputs[1]));
    if (masked && x->dim[0] != inputs[1].dim[1])
        return fail(ST_SPEC, "expects the batch's %lld tokens, of which some may be padding; its input is %s",
                    (long long)inputs[1].dim[1], shape_print(x, text));
    TRY(attention_heads_expected(s));
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

/* Elements of every head's block of queries x keys, -1: too many. */
static int64_t block_elements(const struct attention_settings *s, int64_t queries, int64_t keys_of_query)
{
    return shape_elements(&(struct shape){3, {s->heads, queries, keys_of_query}});
}

int64_t attention_draws(const struct attention_settings *s, int64_t queries, int64_t keys_of_query)
{
    const int64_t elements = block_elements(s, queries, keys_of_query);
    return s->rate > 0 || elements < 0 ? elements : 0;
}

static int64_t draws(const void *settings, const struct shape *inputs)
{
    return attention_draws(settings, inputs->dim[0], inputs->dim[0]);
}

/* Two products forward, four backward, over T x T x D each; a softmax of some 5 operations an element forward and of 4
 * backward. What save: nothing computes again counts. */
struct flops attention_flops(const struct attention_settings *s, const struct shape *output, double seen)
{
    const double elements = (double)shape_elements(output), tokens = elements / (double)shape_width(output);
    const double product = 2 * elements * seen, block = (double)s->heads * tokens * seen;
    const bool again = s->save == SAVE_NOTHING;
    return (struct flops){2 * product + 5 * block, 0, (4 + again) * product + (4 + 5 * again) * block};
}

/* With causal, pairs of a query and a key that it sees alone. */
static struct flops flops(const void *settings, const struct shape *inputs, const struct shape *output)
{
    const struct attention_settings *s = settings;
    const double tokens = (double)inputs->dim[0];
    return attention_flops(s, output, s->causal ? (tokens + 1) / 2 : tokens);
}

/* Where queries, keys and values lie. */
struct sizes {
    bool cross; /* keys and values are the second input */
    int64_t queries, keys, width;
};

static struct sizes sizes_of(const struct reference *r)
{
    const struct attention_settings *s = r->settings;
    const int64_t out = shape_width(&r->y), width = out / s->heads, queries = r->y_elements / out;
    const bool cross = shape_width(&r->x) == out; /* else there are keys and values in the row */
    return (struct sizes){cross, queries, cross ? r->second_elements / (2 * kv_heads_of(s) * width) : queries, width};
}

void attention_measure(const struct reference *r, struct footprint *footprint)
{
    const struct attention_settings *s = r->settings;
    const struct sizes z = sizes_of(r);
    const size_t scratch = (size_t)(z.queries * z.keys) * (sizeof(double) + sizeof(float) + 1) +
                           (size_t)((z.queries + z.keys + 1) * z.width) * sizeof(double);
    const int64_t blocks = r->batch * block_elements(s, z.queries, z.keys);
    *footprint = (struct footprint){.saved = s->save == SAVE_NOTHING ? 0 : (size_t)blocks * sizeof(float),
                                    .forward_scratch = scratch,
                                    .backward_scratch = {0, scratch},
                                    .reads = {0, s->save == SAVE_NOTHING ? READS_X : READS_X | READS_SAVED}};
}

static int64_t heads_of(const struct reference *r) { return ((const struct attention_settings *)r->settings)->heads; }

enum { Q, K, V };

/* A head of queries of a sample, and its blocks of queries x keys. */
struct head {
    int64_t queries, keys, width;
    const float *from[3]; /* the first rows of q, k and v */
    float *to[3];         /* of their gradients; NULL: not wanted */
    int64_t stride[3];
    int64_t y, out;          /* where its first row starts in y, and the stride of rows */
    bool causal, rope, adds; /* adds: to the gradients of keys and values, that a head before it wrote */
    const float *mask;       /* NULL: every key is a token */
    double scale, factor;    /* 1 / sqrt d; R where an element is kept */
    double *slope;           /* dS; first the scores */
    double *turned[2];       /* q {T, d} and k, turned */
    double *sum;             /* of a token's gradient of q or k */
    float *p;
    uint8_t *keep;
};

/* Turns the pairs of a row of position t; sign -1: back. */
static void rotate(double *row, int64_t width, int64_t t, double sign)
{
    for (int64_t c = 0; c < width; c += 2) {
        const double angle = (double)t * pow(10000, -(double)c / (double)width), a = row[c], b = row[c + 1];
        row[c] = a * cos(angle) - sign * b * sin(angle);
        row[c + 1] = b * cos(angle) + sign * a * sin(angle);
    }
}

static void take_rows(const struct head *h, int which, int64_t rows)
{
    for (int64_t t = 0; t < rows; t++) {
        double *row = h->turned[which] + t * h->width;
        for (int64_t c = 0; c < h->width; c++) row[c] = h->from[which][t * h->stride[which] + c];
        if (h->rope) rotate(row, h->width, t, 1);
    }
}

/* Where its parts lie in scratch. */
static void cut_scratch(struct head *h, void *scratch)
{
    const int64_t block = h->queries * h->keys;
    h->slope = scratch;
    h->turned[Q] = h->slope + block;
    h->turned[K] = h->turned[Q] + h->queries * h->width;
    h->sum = h->turned[K] + h->keys * h->width;
    h->p = (void *)(h->sum + h->width);
    h->keep = (void *)(h->p + block);
}

/* Where the rows of sample n's head lie, and those of their gradients. */
static void place_rows(const struct reference *r, const struct kernel_args *args, int64_t n, int64_t index,
                       const struct sizes *z, struct head *h)
{
    const struct attention_settings *s = r->settings;
    const int64_t heads = s->heads, kv = kv_heads_of(s), key = index / (heads / kv);
    const int64_t column[] = {index, (z->cross ? 0 : heads) + key, (z->cross ? 0 : heads) + kv + key};
    for (int which = Q; which <= V; which++) {
        const bool second = z->cross && which != Q;
        const int64_t first = n * (second ? r->second_elements : r->x_elements) + column[which] * z->width;
        h->stride[which] = second ? 2 * kv * z->width : shape_width(&r->x);
        h->from[which] = (const float *)args->x[second] + first;
        h->to[which] = args->dx[second] ? (float *)args->dx[second] + first : NULL;
    }
}

/* saved: where P is, or will be written; NULL: in scratch. */
static struct head head_at(const struct reference *r, const struct kernel_args *args, float *saved, int64_t n,
                           int64_t h)
{
    const struct attention_settings *s = r->settings;
    const struct sizes z = sizes_of(r);
    const int64_t heads = s->heads, group = heads / kv_heads_of(s), block = z.queries * z.keys;
    const bool drops = kernel_drops(args, s->rate), masked = !z.cross && r->second_rank != 3;
    struct head head = {.queries = z.queries,
                        .keys = z.keys,
                        .width = z.width,
                        .out = shape_width(&r->y),
                        .y = n * r->y_elements + h * z.width,
                        .causal = s->causal,
                        .rope = s->rope,
                        .adds = h % group > 0,
                        .mask = masked ? (const float *)args->x[1] + (n * TOKEN_ROWS + TOKEN_MASK) * z.keys : NULL,
                        .scale = 1 / sqrt((double)z.width),
                        .factor = drops ? 1 / (1 - s->rate) : 1};
    place_rows(r, args, n, h, &z, &head);
    cut_scratch(&head, args->scratch);
    if (saved) head.p = saved + (n * heads + h) * block;
    take_rows(&head, Q, z.queries), take_rows(&head, K, z.keys);
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
    for (int64_t i = 0; i < h->queries; i++) {
        double *score = h->slope, most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < h->keys; j++) {
            score[j] = score_of(h, i, j);
            if (sees(h, i, j)) most = fmax(most, score[j]);
        }
        for (int64_t j = 0; j < h->keys; j++) {
            score[j] = sees(h, i, j) ? exp(score[j] - most) : 0;
            sum += score[j];
        }
        for (int64_t j = 0; j < h->keys; j++) h->p[i * h->keys + j] = (float)(sum == 0 ? 0 : score[j] / sum);
    }
}

/* R of an element. */
static double kept(const struct head *h, int64_t at) { return h->keep[at] ? h->factor : 0; }

static void attend(const struct head *h, float *y)
{
    for (int64_t i = 0; i < h->queries; i++)
        for (int64_t c = 0; c < h->width; c++) {
            double sum = 0;
            for (int64_t j = 0; j < h->keys; j++) {
                const int64_t at = i * h->keys + j;
                sum += kept(h, at) * h->p[at] * h->from[V][j * h->stride[V] + c];
            }
            y[h->y + i * h->out + c] = (float)sum;
        }
}

enum status attention_forward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t h = 0; h < heads_of(r); h++) {
            const struct head head = head_at(r, args, args->save ? args->saved : NULL, n, h);
            make_probabilities(&head);
            attend(&head, args->y);
        }
    return ST_OK;
}

static void make_slopes(const struct head *h, const float *dy)
{
    for (int64_t i = 0; i < h->queries; i++) {
        double *slope = h->slope + i * h->keys, total = 0;
        const float *p = h->p + i * h->keys, *dyi = dy + h->y + i * h->out;
        for (int64_t j = 0; j < h->keys; j++) {
            double sum = 0;
            for (int64_t c = 0; c < h->width; c++) sum += (double)dyi[c] * h->from[V][j * h->stride[V] + c];
            slope[j] = kept(h, i * h->keys + j) * sum;
            total += p[j] * slope[j];
        }
        for (int64_t j = 0; j < h->keys; j++) slope[j] = p[j] * (slope[j] - total) * h->scale;
    }
}

/* Writes the sum as the gradient of row t of q or k. */
static void put_sum(const struct head *h, int which, int64_t t)
{
    float *row = h->to[which] + t * h->stride[which];
    if (h->rope) rotate(h->sum, h->width, t, -1);
    for (int64_t c = 0; c < h->width; c++) row[c] = (which == K && h->adds ? row[c] : 0) + (float)h->sum[c];
}

static void query_gradient(const struct head *h, int64_t t)
{
    for (int64_t c = 0; c < h->width; c++) {
        h->sum[c] = 0;
        for (int64_t i = 0; i < h->keys; i++) h->sum[c] += h->slope[t * h->keys + i] * h->turned[K][i * h->width + c];
    }
    put_sum(h, Q, t);
}

/* Of token t, dk and dv. */
static void key_gradients(const struct head *h, const float *dy, int64_t t)
{
    float *dv = h->to[V] + t * h->stride[V];
    for (int64_t c = 0; c < h->width; c++) {
        double k = 0, v = 0;
        for (int64_t i = 0; i < h->queries; i++) {
            const int64_t across = i * h->keys + t;
            k += h->slope[across] * h->turned[Q][i * h->width + c];
            v += kept(h, across) * h->p[across] * dy[h->y + i * h->out + c];
        }
        h->sum[c] = k;
        dv[c] = (h->adds ? dv[c] : 0) + (float)v;
    }
    put_sum(h, K, t);
}

enum status attention_backward(void *state, const struct kernel_args *args)
{
    const struct reference *r = state;
    for (int64_t n = 0; n < r->batch; n++)
        for (int64_t h = 0; h < heads_of(r); h++) {
            const struct head head = head_at(r, args, args->saved, n, h);
            if (!args->saved) make_probabilities(&head);
            make_slopes(&head, args->dy);
            for (int64_t t = 0; head.to[Q] && t < head.queries; t++) query_gradient(&head, t);
            for (int64_t t = 0; head.to[K] && t < head.keys; t++) key_gradients(&head, args->dy, t);
        }
    return ST_OK;
}

const struct layer layer_attention = {
    .name = "attention",
    .doc = "softmax(q k / sqrt(d)) v by heads, of the queries, keys and values in one row",
    .inputs = 2,
    .reads_batch = true,
    .keys = keys,
    .settings_size = sizeof(struct attention_settings),
    .infer = infer,
    .flops = flops,
    .draws = draws,
    .reference = REFERENCE_KERNEL(attention_forward, attention_backward),
    .measure = attention_measure};
