/* Attention (attention.c) of two values: the queries {T, D}, or one of them, {D}, and the keys and values of another
 * sequence side by side, {S, 2 E}; P is T x S, and dropout's element is (head * T + query) * S + key of the sample. It
 * reads no mask: every key takes part, padding too. It is neither causal nor has it rope, since its queries and keys
 * are places of different sequences. */
#include "layers/attention.h"

static const struct setting keys[] = {ATTENTION_HEADS, ATTENTION_KEPT, {.key = NULL}};

static enum status infer(const void *settings, const struct shape *inputs, struct shape *output)
{
    char text[96];
    (void)output;
    const struct attention_settings *s = settings;
    const struct shape *x = &inputs[0], *kv = &inputs[1];
    TRY(rows_expected(x));
    TRY(attention_heads_expected(s));
    const int64_t width = shape_width(x), expected = 2 * kv_heads_of(s) * (width / s->heads);
    if (width % s->heads)
        return fail(ST_SPEC, "expects queries a multiple of %lld wide, for its heads; they are %s", (long long)s->heads,
                    shape_print(x, text));
    if (kv->rank != 2 || kv->dim[1] != expected)
        return fail(ST_SPEC,
                    "expects a second input (the shortcut) with keys and values of each token side by side, tokens x "
                    "%lld for %lld heads of the queries' width; it is %s",
                    (long long)expected, (long long)kv_heads_of(s), shape_print(kv, text));
    return ST_OK;
}

static int64_t draws(const void *settings, const struct shape *inputs)
{
    return attention_draws(settings, shape_elements(&inputs[0]) / shape_width(&inputs[0]), inputs[1].dim[0]);
}

static struct flops flops(const void *settings, const struct shape *inputs, const struct shape *output)
{
    return attention_flops(settings, output, (double)inputs[1].dim[0]);
}

const struct layer layer_cross_attention = {.name = "cross_attention",
                                            .doc =
                                                "attention of one branch's queries to the keys and values of another",
                                            .inputs = 2,
                                            .keys = keys,
                                            .settings_size = sizeof(struct attention_settings),
                                            .infer = infer,
                                            .flops = flops,
                                            .draws = draws,
                                            .reference = REFERENCE_KERNEL(attention_forward, attention_backward),
                                            .measure = attention_measure};
