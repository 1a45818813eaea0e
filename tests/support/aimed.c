/* Alterations aimed at one check of the simulator each, of what an op must do: nothing but that check says what they
 * are expected to bring out. */
#include "plan_faults.h"

#include <stddef.h>
#include <string.h>

typedef bool predicate(const struct plan_data *a, int op);

/* From a random one on, the first op that fits; -1: none does. */
static int op_that(const struct plan_data *a, struct source *s, predicate *fits)
{
    const int from = (int)draw_below(s, (uint32_t)a->ops);
    for (int i = 0; i < a->ops; i++)
        if (fits(a, (from + i) % a->ops)) return (from + i) % a->ops;
    return -1;
}

static bool is(const struct plan_data *a, int op, enum op_kind kind) { return a->op[op].kind == kind; }
static const struct plan_data_node *node_of(const struct plan_data *a, int op) { return &a->node[a->op[op].node]; }

/* What a backward op reads, enum reads. */
static unsigned reads_of(const struct plan_data *a, int op)
{
    const struct footprint *f = &node_of(a, op)->footprint;
    const unsigned *reads = f->reads, parts = f->part_elements ? PART_PARAMS | PART_INPUT : a->op[op].parts;
    return (parts & PART_PARAMS ? reads[PART_INDEX_PARAMS] : 0) | (parts & PART_INPUT ? reads[PART_INDEX_INPUT] : 0);
}

static bool forward(const struct plan_data *a, int op) { return is(a, op, OP_FORWARD); }
static bool backward(const struct plan_data *a, int op) { return is(a, op, OP_BACKWARD); }
static bool accumulate(const struct plan_data *a, int op) { return is(a, op, OP_ACCUMULATE); }
static bool copies(const struct plan_data *a, int op) { return is(a, op, OP_COPY); }
static bool reads_batch(const struct plan_data *a, int op) { return forward(a, op) && a->op[op].x[0] == BUFFER_BATCH; }
static bool one_input(const struct plan_data *a, int op) { return forward(a, op) && node_of(a, op)->inputs[1] < 0; }
static bool saving(const struct plan_data *a, int op) { return forward(a, op) && a->op[op].saved >= 0; }
static bool above(const struct plan_data *a, int op) { return backward(a, op) && a->op[op].node > 0; }
static bool x_spare(const struct plan_data *a, int op)
{
    return backward(a, op) && !(reads_of(a, op) & (READS_X | READS_X0));
}
static bool y_spare(const struct plan_data *a, int op) { return backward(a, op) && !(reads_of(a, op) & READS_Y); }
static bool spares_saved(const struct plan_data *a, int op)
{
    return backward(a, op) && !(reads_of(a, op) & READS_SAVED && node_of(a, op)->footprint.saved);
}
static bool first_but_last(const struct plan_data *a, int op)
{
    return forward(a, op) && !a->op[op].recompute && a->op[op].node + 1 < a->nodes;
}
static bool saves_nothing(const struct plan_data *a, int op)
{
    return forward(a, op) && !a->op[op].save && !node_of(a, op)->footprint.saved;
}
/* The first of the two ops of a split backward; one that has no parameters. */
static bool split(const struct plan_data *a, int op)
{
    return backward(a, op) && node_of(a, op)->footprint.split && a->op[op].parts == PART_PARAMS && op + 1 < a->ops &&
           backward(a, op + 1) && a->op[op + 1].node == a->op[op].node;
}
static bool input_alone(const struct plan_data *a, int op)
{
    const struct footprint *f = &node_of(a, op)->footprint;
    return backward(a, op) && !f->split && !f->part_elements && a->op[op].parts == PART_INPUT;
}

/* An update after an op that reads its parameters, but does not write the gradient. */
static bool updates(const struct plan_data *a, int op) { return is(a, op, OP_UPDATE); }
static bool updates_after_read(const struct plan_data *a, int op)
{
    return updates(a, op) && a->op[op - 1].node == a->op[op].node && a->op[op - 1].gradients < 0 &&
           a->op[op - 1].kind <= OP_BACKWARD;
}

/* One that sets member to value in an op that fits; op is its number. */
#define AIMED(name, fits, member, value)                                                                               \
    static bool name(struct plan_data *a, struct source *s)                                                            \
    {                                                                                                                  \
        const int op = op_that(a, s, fits);                                                                            \
        if (op < 0) return false;                                                                                      \
        a->op[op].member = (value);                                                                                    \
        return true;                                                                                                   \
    }
AIMED(no_batch, reads_batch, x[0], 0)
AIMED(second_input, one_input, x[1], 0)
AIMED(not_saved, saving, save, false)
AIMED(forward_of_the_next, first_but_last, node, a->op[op].node + 1)
AIMED(backward_of_the_one_before, above, node, a->op[op].node - 1)
AIMED(input_first, split, parts, PART_INPUT)
AIMED(other_part, input_alone, parts, PART_PARAMS)
AIMED(x_not_read, x_spare, x[0], 0)
AIMED(y_not_read, y_spare, y, 0)
AIMED(saved_not_read, spares_saved, saved, 0)
AIMED(sum_of_the_first_node, accumulate, node, 0)
AIMED(saves_unread, saves_nothing, save, true)
AIMED(gradient_of_a_forward, forward, dx[1], 0)

AIMED(update_of_another_part, updates, part, a->op[op].part + 1)

/* The same of the footprint of the op's node. */
#define OF_FUSED(name, member, value)                                                                                  \
    static bool name(struct plan_data *a, struct source *s)                                                            \
    {                                                                                                                  \
        const int op = op_that(a, s, updates);                                                                         \
        if (op >= 0) a->node[a->op[op].node].footprint.member = (value);                                               \
        return op >= 0;                                                                                                \
    }
OF_FUSED(gradients_larger, gradients, node_of(a, op)->footprint.gradients + 256)
OF_FUSED(gradients_static, gradients, 0)
OF_FUSED(in_other_parts, part_elements, node_of(a, op)->footprint.part_elements + 64)

static bool parameters_twice(struct plan_data *a, struct source *s)
{
    const int op = op_that(a, s, split);
    if (op >= 0) a->op[op + 1].parts = PART_PARAMS;
    return op >= 0;
}

static bool unneeded_copy(struct plan_data *a, struct source *s)
{
    const int op = op_that(a, s, copies);
    if (op >= 0) a->node[a->op[op].node].footprint.writes_dy = false;
    return op >= 0;
}

/* One more buffer like another, where nothing else is. */
static int another(struct plan_data *a, int like, int birth)
{
    struct buffer *b = &a->buffer[a->buffers];
    *b = a->buffer[like];
    b->birth = birth;
    b->offset = a->count[COUNT_ARENA];
    a->count[COUNT_ARENA] += b->bytes;
    return a->buffers++;
}

static bool sum_with_nothing(struct plan_data *a, struct source *s)
{
    const int op = op_that(a, s, accumulate);
    if (op >= 0) a->op[op].y = a->op[op].x[1] = another(a, a->op[op].y, op);
    return op >= 0;
}

/* Whether the op uses a buffer. */
static bool uses(const struct op *op, int id)
{
    const int operand[] = {op->x[0], op->x[1],  op->y,       op->dx[0], op->dx[1],
                           op->dy,   op->saved, op->scratch, op->once,  op->gradients};
    for (size_t i = 0; i < sizeof operand / sizeof *operand; i++)
        if (operand[i] == id) return true;
    return false;
}

/* Each buffer lives to the last op that uses it; those that none uses are at the end and go. */
static void live_again(struct plan_data *a)
{
    memset(a->live, 0, (size_t)a->ops * sizeof *a->live);
    int buffers = 0;
    for (int id = 0; id < a->buffers; id++) {
        struct buffer *b = &a->buffer[id];
        for (b->death = a->ops - 1; b->death >= 0 && !uses(&a->op[b->death], id);) b->death--;
        for (int i = b->birth; i <= b->death; i++) a->live[i] += b->bytes;
        if (b->death >= 0) buffers = id + 1;
    }
    a->buffers = buffers;
}

static bool update_too_early(struct plan_data *a, struct source *s)
{
    const int at = op_that(a, s, updates_after_read);
    if (at < 0) return false;
    const struct op update = a->op[at];
    a->op[at] = a->op[at - 1];
    a->op[at - 1] = update;
    for (int id = 0; id < a->buffers; id++) a->buffer[id].birth += a->buffer[id].birth == at - 1;
    live_again(a);
    return true;
}

/* Nothing runs from an op on, and all else is as if it had been meant so. */
static bool end_before(struct plan_data *a, int op)
{
    for (int id = 0; id < a->buffers; id++) /* of buffers that remain none may follow one that goes */
        if (a->buffer[id].birth >= op)
            for (int after = id; after < a->buffers; after++)
                if (a->buffer[after].birth < op) return false;
    a->ops = op;
    live_again(a);
    return true;
}

static bool forwards_end(struct plan_data *a, struct source *s)
{
    (void)s;
    return end_before(a, 1);
}

static bool backwards_end(struct plan_data *a, struct source *s)
{
    (void)s;
    return backward(a, a->ops - 1) && end_before(a, a->ops - 1);
}

/* A recompute saves, and so does the forward before it, elsewhere: what the backward reads is the older of the two. */
static bool older_saved_set(struct plan_data *a, struct source *s)
{
    const int read = op_that(a, s, backward), id = a->op[read].saved;
    int writer = read, older = -1;
    while (writer >= 0 && !(forward(a, writer) && a->op[writer].saved == id)) writer--;
    if (id < 0 || writer < 0) return false;
    for (int i = 0; i < writer; i++)
        if (forward(a, i) && a->op[i].node == a->op[read].node) older = i;
    if (older < 0 || a->op[older].save) return false;
    a->op[older].save = true;
    a->op[older].saved = another(a, id, older);
    for (int i = read; i < a->ops; i++)
        if (backward(a, i) && a->op[i].saved == id) a->op[i].saved = a->buffers - 1;
    live_again(a);
    return true;
}

const struct alteration aimed[AIMED_ALTERATIONS] = {
    {"the batch from elsewhere", no_batch, "expected the batch"},
    {"an input that a node has not", second_input, "expected none"},
    {"saved tensors of an op that saves nothing", not_saved, "expected none, the op saves nothing"},
    {"a first forward too early", forward_of_the_next, "a first forward; expected that of node "},
    {"a backward too early", backward_of_the_one_before, "out of order; expected the backward of node "},
    {"a backward twice", parameters_twice, "runs a second time; expected once"},
    {"a split backward the other way round", input_first, "a split backward runs PARAMS, then INPUT"},
    {"the other part of a backward", other_part, "parts 1; expected 2"},
    {"an x that is not read", x_not_read, "expected none, it is not read"},
    {"a y that is not read", y_not_read, "y is buffer 0; expected none, it is not read"},
    {"a saved tensors that is not read", saved_not_read,
     "the saved tensors are in buffer 0; expected none, the op does not read them"},
    {"an update too early", update_too_early, "reads parameters after their update"},
    {"an update of another part", update_of_another_part, "expected "},
    {"larger gradients of parameters", gradients_larger, "expected "},
    {"static gradients of parameters", gradients_static, "expected "},
    {"an update in other parts", in_other_parts, "expected "},
    {"an older saved tensors", older_saved_set, "expected the newest, by op "},
    {"a sum with nothing", sum_with_nothing, "which are undefined"},
    {"a sum of another node", sum_of_the_first_node, "expected a contribution of node 0"},
    {"an unneeded copy", unneeded_copy, "is a copy; expected one only before"},
    {"a gradient of a forward", gradient_of_a_forward, "buffer 0 is an operand; expected none there"},
    {"saved tensors that no op reads", saves_unread, "saves tensors that no op reads"},
    {"no forward after the first", forwards_end, "at the end: node 1 ("},
    {"no last backward", backwards_end, ") has not run backward"},
};
