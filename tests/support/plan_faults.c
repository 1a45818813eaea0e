#include "plan_faults.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct buffer *any_buffer(struct plan_data *a, struct source *s)
{
    return &a->buffer[draw_below(s, (uint32_t)a->buffers)];
}
static struct op *any_op(struct plan_data *a, struct source *s) { return &a->op[draw_below(s, (uint32_t)a->ops)]; }

/* From a random one on, the first op of a kind. */
static struct op *op_of_kind(struct plan_data *a, struct source *s, enum op_kind kind)
{
    int from = (int)draw_below(s, (uint32_t)a->ops);
    for (int i = 0; i < a->ops; i++)
        if (a->op[(from + i) % a->ops].kind == kind) return &a->op[(from + i) % a->ops];
    return NULL;
}

static bool offset_overlaps(struct plan_data *a, struct source *s)
{
    struct buffer *b = any_buffer(a, s);
    for (int i = 0; i < a->buffers; i++) {
        const struct buffer *c = &a->buffer[i];
        if (c == b || c->birth > b->death || b->birth > c->death) continue;
        if (c->offset + b->bytes > a->count[COUNT_ARENA]) continue;
        b->offset = c->offset;
        return true;
    }
    return false;
}

static bool death_sooner(struct plan_data *a, struct source *s)
{
    struct buffer *b = any_buffer(a, s);
    return b->death > b->birth && b->death--;
}

static bool death_later(struct plan_data *a, struct source *s)
{
    struct buffer *b = any_buffer(a, s);
    return b->death + 1 < a->ops && ++b->death;
}

static bool birth_later(struct plan_data *a, struct source *s)
{
    struct buffer *b = any_buffer(a, s);
    return b->death > b->birth && ++b->birth;
}

static bool birth_sooner(struct plan_data *a, struct source *s)
{
    struct buffer *b = any_buffer(a, s);
    return b->birth > 0 && b->birth--;
}

static bool bytes_less(struct plan_data *a, struct source *s)
{
    struct buffer *b = any_buffer(a, s);
    b->bytes -= a->granularity;
    return true;
}

/* Op number at goes; what was used there alone goes nowhere and is wrong for that alone. */
static bool op_removed(struct plan_data *a, struct source *s)
{
    int at = (int)draw_below(s, (uint32_t)a->ops);
    memmove(&a->op[at], &a->op[at + 1], (size_t)(a->ops - at - 1) * sizeof *a->op);
    memmove(&a->live[at], &a->live[at + 1], (size_t)(a->ops - at - 1) * sizeof *a->live);
    a->ops--;
    for (int i = 0; i < a->buffers; i++) {
        struct buffer *b = &a->buffer[i];
        b->birth -= b->birth > at || b->birth == a->ops;
        b->death -= b->death > at || b->death == a->ops;
        if (b->death < b->birth) b->death = b->birth;
    }
    return true;
}

static bool op_repeated(struct plan_data *a, struct source *s)
{
    int at = (int)draw_below(s, (uint32_t)a->ops - 1);
    a->op[at + 1] = a->op[at];
    return true;
}

static bool backwards_exchanged(struct plan_data *a, struct source *s)
{
    struct op *op = op_of_kind(a, s, OP_BACKWARD), *other = op_of_kind(a, s, OP_BACKWARD), kept = *op;
    if (op == other) return false;
    *op = *other;
    *other = kept;
    return true;
}

static bool operand_another(struct plan_data *a, struct source *s)
{
    struct op *op = any_op(a, s);
    int *one = &op->buffer[draw_below(s, OP_OPERANDS)];
    if (*one < 0 || a->buffers < 2) return false;
    *one = (*one + 1 + (int)draw_below(s, (uint32_t)a->buffers - 1)) % a->buffers;
    return true;
}

static bool operand_none(struct plan_data *a, struct source *s)
{
    struct op *op = any_op(a, s);
    int *one = &op->buffer[draw_below(s, OP_OPERANDS)];
    if (*one == BUFFER_NONE) return false;
    *one = BUFFER_NONE;
    return true;
}

/* An operand that the op does not have: a buffer that is alive then for others. */
static bool operand_more(struct plan_data *a, struct source *s)
{
    int at = (int)draw_below(s, (uint32_t)a->ops);
    struct op *op = &a->op[at];
    int *one = &op->buffer[draw_below(s, OP_OPERANDS)];
    for (int id = 0; *one == BUFFER_NONE && id < a->buffers; id++) {
        bool used = a->buffer[id].birth >= at || a->buffer[id].death <= at;
        for (int k = 0; k < OP_OPERANDS; k++) used |= op->buffer[k] == id;
        if (!used) *one = id;
        if (!used) return true;
    }
    return false;
}

/* A buffer more is alive until an op, where nothing else is. */
static void prolong(struct plan_data *a, int id, int until)
{
    struct buffer *b = &a->buffer[id];
    for (int i = b->death + 1; i <= until; i++) a->live[i] += b->bytes;
    b->death = until;
    b->offset = a->count[COUNT_ARENA];
    a->count[COUNT_ARENA] += b->bytes;
}

/* By buffer, the op that alone writes there, where that is a forward; -1: none. */
static void find_writers(const struct plan_data *a, int *writer)
{
    for (int id = 0; id < a->buffers; id++) writer[id] = -1;
    for (int i = 0; i < a->ops; i++)
        if (a->op[i].kind == OP_FORWARD && a->op[i].y >= 0) writer[a->op[i].y] = writer[a->op[i].y] < 0 ? i : a->ops;
    for (int id = 0; id < a->buffers; id++)
        if (writer[id] == a->ops || (writer[id] >= 0 && a->op[writer[id]].x[0] == id)) writer[id] = -1;
    for (int i = 0; i < a->ops; i++)
        for (int k = 0; k < NODE_INPUTS_MAX; k++)
            if (a->op[i].dx[k] >= 0) writer[a->op[i].dx[k]] = -1;
}

/* A value that was written again is read where it was written first: the same bits, and yet not what was planned. */
static bool read_of_the_old(struct plan_data *a, struct source *s)
{
    int *writer = calloc((size_t)a->buffers, sizeof *writer), from = (int)draw_below(s, (uint32_t)a->ops), old = -1;
    find_writers(a, writer);
    for (int k = 0; old < 0 && k < a->ops; k++) {
        int at = (from + k) % a->ops, id = a->op[at].x[0];
        if (id < 0 || writer[id] < 0 || writer[id] >= at || !a->op[writer[id]].recompute) continue;
        for (int i = 0; old < 0 && i < a->buffers; i++)
            if (writer[i] >= 0 && writer[i] < writer[id] && a->op[writer[i]].node == a->op[writer[id]].node &&
                a->buffer[i].slice == a->buffer[id].slice && a->buffer[i].death < at)
                old = i;
        if (old < 0) continue;
        a->op[at].x[0] = old;
        prolong(a, old, at);
    }
    free(writer);
    return old >= 0;
}

void plan_data_forget(struct plan_data *a, int id)
{
    int last = --a->buffers;
    a->buffer[id] = a->buffer[last];
    for (int i = 0; i < a->ops; i++) {
        struct op *op = &a->op[i];
        for (int k = 0; k < OP_OPERANDS; k++)
            if (op->buffer[k] == last) op->buffer[k] = id;
    }
}

/* y takes the place of an x that dies, for all its life, though the kernel cannot write so. */
static bool output_over_input(struct plan_data *a, struct source *s)
{
    int from = (int)draw_below(s, (uint32_t)a->ops);
    for (int k = 0; k < a->ops; k++) {
        int at = (from + k) % a->ops, x = a->op[at].x[0], y = a->op[at].y;
        if (a->op[at].kind != OP_FORWARD || x < 0 || y < 0 || x == y || a->node[a->op[at].node].footprint.y_over_x)
            continue;
        if (a->buffer[x].death != at || a->buffer[x].bytes != a->buffer[y].bytes) continue;
        for (int i = 0; i < a->ops; i++) {
            for (int o = 0; o < OP_OPERANDS; o++)
                if (a->op[i].buffer[o] == y) a->op[i].buffer[o] = x;
        }
        a->live[at] -= a->buffer[y].bytes;
        prolong(a, x, at);
        a->buffer[x].death = a->buffer[y].death;
        plan_data_forget(a, y);
        return true;
    }
    return false;
}

static bool batch_elsewhere(struct plan_data *a, struct source *s)
{
    struct op *op = any_op(a, s);
    if (op->x[0] < 0) return false;
    op->x[0] = BUFFER_BATCH;
    return true;
}

static bool node_another(struct plan_data *a, struct source *s)
{
    struct op *op = any_op(a, s);
    op->node = (op->node + 1) % a->nodes;
    return true;
}

static bool kind_another(struct plan_data *a, struct source *s)
{
    struct op *op = any_op(a, s);
    op->kind = (enum op_kind)((op->kind + 1) % OP_KINDS);
    return true;
}

static bool parts_another(struct plan_data *a, struct source *s)
{
    struct op *op = op_of_kind(a, s, OP_BACKWARD);
    op->parts ^= 1 + draw_below(s, 3);
    return true;
}

static bool recompute_flag(struct plan_data *a, struct source *s)
{
    struct op *op = op_of_kind(a, s, OP_FORWARD);
    op->recompute = !op->recompute;
    return true;
}

static bool save_flag(struct plan_data *a, struct source *s)
{
    struct op *op = op_of_kind(a, s, OP_FORWARD);
    op->save = !op->save;
    return true;
}

static bool category_another(struct plan_data *a, struct source *s)
{
    struct buffer *b = any_buffer(a, s);
    b->category = (enum category)((b->category + 1) % CATEGORIES);
    return true;
}

/* A sum of gradients may be of either input of a node that hands the same gradient to both. */
static bool buffer_of_another(struct plan_data *a, struct source *s)
{
    struct buffer *b = any_buffer(a, s);
    b->node = (b->node + 1) % a->nodes;
    return a->op[b->birth].kind != OP_ACCUMULATE;
}

static bool real_another(struct plan_data *a, struct source *s)
{
    double *real = &a->real[draw_below(s, REALS)];
    *real += *real > 0 ? *real * 1e-9 : 1;
    return true;
}

static bool word_shorter(struct plan_data *a, struct source *s)
{
    static char word[1 << 16];
    (void)s;
    snprintf(word, sizeof word, "%s", a->schedule);
    char *last = strrchr(word, ' ');
    cr_assert(last && strlen(a->schedule) < sizeof word);
    *last = 0;
    a->schedule = word;
    return true;
}

static bool word_longer(struct plan_data *a, struct source *s)
{
    static char word[1 << 16];
    (void)s;
    snprintf(word, sizeof word, "%s F[0,1)", a->schedule);
    a->schedule = word;
    return true;
}

/* ---- of the network that it was made from ---- */

static struct plan_data_node *any_node(struct plan_data *a, struct source *s)
{
    return &a->node[draw_below(s, (uint32_t)a->nodes)];
}

static bool input_later(struct plan_data *a, struct source *s)
{
    int n = (int)draw_below(s, (uint32_t)a->nodes);
    a->node[n].inputs[0] = n + 1;
    return true;
}

static bool input_another(struct plan_data *a, struct source *s)
{
    int n = 1 + (int)draw_below(s, (uint32_t)a->nodes - 1);
    a->node[n].inputs[0] = (a->node[n].inputs[0] + 1) % (n + 1);
    return true;
}

static bool gradient_unwanted(struct plan_data *a, struct source *s)
{
    struct plan_data_node *n = any_node(a, s);
    n->wants_gradient = !n->wants_gradient;
    return true;
}

static bool reads_more(struct plan_data *a, struct source *s)
{
    struct op *op = op_of_kind(a, s, OP_BACKWARD);
    const struct plan_data_node *node = &a->node[op->node];
    const unsigned reads = node->footprint.reads[0] | node->footprint.reads[1];
    unsigned missing = (READS_X | READS_Y) & ~reads;
    if (reads & READS_X0 && node->inputs[1] < 0) missing &= READS_Y;
    if (!missing || (missing == READS_Y && a->node[op->node].output_bytes == 0)) return false;
    a->node[op->node].footprint.reads[0] |= missing;
    a->node[op->node].footprint.reads[1] |= missing;
    return true;
}

static bool gradient_of_no_bytes(struct plan_data *a, struct source *s)
{
    struct op *op = op_of_kind(a, s, OP_ACCUMULATE);
    if (op) op->bytes = 0;
    return op;
}

static bool gradient_of_fewer_bytes(struct plan_data *a, struct source *s)
{
    struct op *op = op_of_kind(a, s, draw_below(s, 2) ? OP_ACCUMULATE : OP_COPY);
    if (op) op->bytes -= sizeof(float);
    return op;
}

/* What only ops of another kind have. */
static bool more_than_it_has(struct plan_data *a, struct source *s)
{
    struct op *op = any_op(a, s);
    const bool forward = op->kind == OP_FORWARD, backward = op->kind == OP_BACKWARD;
    if (!forward && draw_below(s, 2)) return op->recompute = true;
    if (!forward && draw_below(s, 2)) return op->save = true;
    if (!backward && draw_below(s, 2)) return (op->parts = PART_INPUT) > 0;
    return (forward || backward) && (op->bytes = 256) > 0;
}

/* The plan sets drop_dead but contains a dead recomputation. */
static bool dead_recompute(struct plan_data *a, struct source *s)
{
    (void)s;
    for (int i = 0; i < a->ops && !a->drop_dead; i++)
        if (a->op[i].recompute && !a->op[i].save && a->op[i].y >= 0 && a->buffer[a->op[i].y].death == i)
            return (a->drop_dead = 1) > 0;
    return false;
}

/* Those that one statement makes. */
#define ALTERATION(name, statement)                                                                                    \
    static bool name(struct plan_data *a, struct source *s)                                                            \
    {                                                                                                                  \
        (void)s;                                                                                                       \
        (statement);                                                                                                   \
        return true;                                                                                                   \
    }
ALTERATION(offset_beyond, any_buffer(a, s)->offset = a->count[COUNT_ARENA])
ALTERATION(offset_wraps, any_buffer(a, s)->offset = SIZE_MAX - 255)
ALTERATION(offset_askew, any_buffer(a, s)->offset += 8)
ALTERATION(bytes_more, any_buffer(a, s)->bytes += a->granularity)
ALTERATION(operand_nowhere, any_op(a, s)->x[0] = a->buffers)
ALTERATION(operand_below, any_op(a, s)->dx[1] = -3)
ALTERATION(node_nowhere, any_op(a, s)->node = a->nodes)
ALTERATION(kind_unknown, any_op(a, s)->kind = (enum op_kind)77)
ALTERATION(category_unknown, any_buffer(a, s)->category = CATEGORIES)
ALTERATION(live_another, a->live[draw_below(s, (uint32_t)a->ops)] += 256)
ALTERATION(count_another, a->count[draw_below(s, COUNTS)]++)
ALTERATION(real_is_none, a->real[draw_below(s, REALS)] = (double)NAN)
ALTERATION(memory_another, a->memory[draw_below(s, PLAN_DATA_CATEGORIES)] += 256)
ALTERATION(peak_elsewhere, a->peak_op = "F nothing")
ALTERATION(word_none, a->schedule = "forwards and backwards")
ALTERATION(output_larger, any_node(a, s)->output_bytes += 256 * a->slices)
ALTERATION(scratch_larger, any_node(a, s)->footprint.forward_scratch += 256)
ALTERATION(parameter_nowhere, a->parameter[draw_below(s, (uint32_t)a->parameters)].node = a->nodes)
ALTERATION(parameter_larger, a->parameter[draw_below(s, (uint32_t)a->parameters)].elements += 64)
ALTERATION(granularity_none, a->granularity = 0)
ALTERATION(no_ops, a->ops = 0)

const struct alteration alterations[ALTERATIONS] = {
    {"an offset where another buffer lives", offset_overlaps, "overlaps buffer"},
    {"an offset at the arena's end", offset_beyond, "within the arena's"},
    {"an offset that wraps round", offset_wraps, "within the arena's"},
    {"an offset that is not aligned", offset_askew, "expected multiples of"},
    {"a death an op sooner", death_sooner, "buffer "},
    {"a death an op later", death_later, "buffer "},
    {"a birth an op later", birth_later, "buffer "},
    {"a birth an op sooner", birth_sooner, "buffer "},
    {"a smaller buffer", bytes_less, "expected "},
    {"a larger buffer", bytes_more, "expected "},
    {"an op less", op_removed, NULL},
    {"an op twice", op_repeated, NULL},
    {"two backwards exchanged", backwards_exchanged, NULL},
    {"another operand", operand_another, "expected "},
    {"an operand less", operand_none, "expected "},
    {"an operand more", operand_more, "expected "},
    {"a read of the old", read_of_the_old, "expected the newest, by op "},
    {"an output over an input", output_over_input, "expected a buffer of its own"},
    {"an operand that is no buffer", operand_nowhere, "an operand is"},
    {"an operand below all", operand_below, "an operand is -3"},
    {"the batch as an operand", batch_elsewhere, "expected "},
    {"another node", node_another, "expected "},
    {"no node", node_nowhere, "node is"},
    {"another kind", kind_another, "expected "},
    {"no kind", kind_unknown, "kind is 77; expected 0..4"},
    {"other parts", parts_another, "expected "},
    {"the flag of a recomputation", recompute_flag, "recompute is "},
    {"the flag of saving", save_flag, "sav"},
    {"no category", category_unknown, "category is 5; expected 0..4"},
    {"another category", category_another, "is described as "},
    {"a buffer of another node", buffer_of_another, "is described as "},
    {"live bytes of an op", live_another, "bytes; expected"},
    {"a count", count_another, NULL},
    {"a real figure", real_another, "expected "},
    {"a figure that is no number", real_is_none, "is nan"},
    {"a category's bytes", memory_another, "memory of "},
    {"the peak's op", peak_elsewhere, "peak_op is 'F nothing'"},
    {"a shorter schedule", word_shorter, "schedule"},
    {"a longer schedule", word_longer, NULL},
    {"a schedule that is none", word_none, "expected F[from,to)"},
    {"a larger value", output_larger, "expected "},
    {"more scratch", scratch_larger, "scratch"},
    {"an input that comes later", input_later, "input 0 is"},
    {"another input", input_another, NULL},
    {"a gradient that no op needs", gradient_unwanted, "wants_gradient"},
    {"a backward that reads more", reads_more, "expected "},
    {"a parameter of no node", parameter_nowhere, "parameter "},
    {"a larger parameter", parameter_larger, "expected "},
    {"a gradient of no bytes", gradient_of_no_bytes, "expected those of a gradient"},
    {"a gradient of fewer bytes", gradient_of_fewer_bytes, "expected "},
    {"what an op of its kind has not", more_than_it_has, "expected 0 except of "},
    {"a dead recomputation", dead_recompute, "is a dead recomputation"},
    {"no granularity", granularity_none, "granularity is 0"},
    {"no ops", no_ops, "expected some"},
};
