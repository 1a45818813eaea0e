/* Alterations aimed at one check of the simulator each, of what an op must do: nothing but that check says what they
 * are expected to bring out. */
#include "plan_faults.h"

#include <criterion/criterion.h>
#include <stddef.h>
#include <string.h>

#include "plan/schedule.h"

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
static bool above(const struct plan_data *a, int op)
{
    return backward(a, op) && a->op[op].node > 0 && node_of(a, op)->whole == node_of(a, op)[-1].whole;
}
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
    return forward(a, op) && !a->op[op].recompute && a->op[op].node + 1 < a->nodes &&
           node_of(a, op)->whole == node_of(a, op)[1].whole;
}
static bool saves_nothing(const struct plan_data *a, int op)
{
    return forward(a, op) && !a->op[op].save && !node_of(a, op)->footprint.saved;
}
/* The first of the two ops of a split backward; one that has no parameters. */
static bool split(const struct plan_data *a, int op)
{
    return backward(a, op) && node_of(a, op)->footprint.split && a->op[op].parts == PART_PARAMS && op + 1 < a->ops &&
           backward(a, op + 1) && a->op[op + 1].node == a->op[op].node && a->op[op + 1].slice == a->op[op].slice &&
           a->op[op].slice <= 0;
}
static bool input_alone(const struct plan_data *a, int op)
{
    const struct footprint *f = &node_of(a, op)->footprint;
    return backward(a, op) && !f->split && !f->part_elements && a->op[op].parts == PART_INPUT && a->op[op].slice <= 0;
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

/* Whether the op uses a buffer. */
static bool uses(const struct op *op, int id)
{
    for (int k = 0; k < OP_OPERANDS; k++)
        if (op->buffer[k] == id) return true;
    return false;
}

/* Each buffer lives from the first to the last op that uses it; those that none uses go. */
static void live_again(struct plan_data *a)
{
    memset(a->live, 0, (size_t)a->ops * sizeof *a->live);
    for (int id = a->buffers - 1; id >= 0; id--) {
        struct buffer *b = &a->buffer[id];
        for (b->birth = 0; b->birth < a->ops && !uses(&a->op[b->birth], id);) b->birth++;
        for (b->death = a->ops - 1; b->death >= 0 && !uses(&a->op[b->death], id);) b->death--;
        for (int i = b->birth; i <= b->death; i++) a->live[i] += b->bytes;
        if (b->death < 0) plan_data_forget(a, id);
    }
}

static bool sum_with_nothing(struct plan_data *a, struct source *s)
{
    const int op = op_that(a, s, accumulate);
    if (op < 0) return false;
    a->op[op].y = a->op[op].x[1] = another(a, a->op[op].y, op);
    live_again(a);
    return true;
}

/* Two ops that follow each other are exchanged, and buffers live accordingly. */
static bool exchange(struct plan_data *a, int op)
{
    if (op < 0) return false;
    const struct op second = a->op[op];
    a->op[op] = a->op[op - 1];
    a->op[op - 1] = second;
    live_again(a);
    for (int id = 0; id < a->buffers; id++) { /* apart from all others */
        if (a->buffer[id].birth != op - 1 && a->buffer[id].birth != op) continue;
        a->buffer[id].offset = a->count[COUNT_ARENA];
        a->count[COUNT_ARENA] += a->buffer[id].bytes;
        a->count[COUNT_PEAK] += a->buffer[id].bytes;
    }
    return true;
}

static bool update_too_early(struct plan_data *a, struct source *s)
{
    return exchange(a, op_that(a, s, updates_after_read));
}

/* Nothing runs from an op on, and all else is as if it had been meant so. */
static bool end_before(struct plan_data *a, int op)
{
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
        if (forward(a, i) && a->op[i].node == a->op[read].node && a->op[i].slice == a->op[read].slice) older = i;
    if (older < 0 || a->op[older].save) return false;
    a->op[older].save = true;
    a->op[older].saved = another(a, id, older);
    for (int i = read; i < a->ops; i++)
        if (backward(a, i) && a->op[i].saved == id) a->op[i].saved = a->buffers - 1;
    live_again(a);
    return true;
}

/* ---- slices of the batch ---- */

static bool passes(const struct plan_data *a, int op) { return forward(a, op) || backward(a, op); }
static bool of_slice(const struct plan_data *a, int op) { return passes(a, op) && a->op[op].slice != WHOLE_BATCH; }
static bool of_batch(const struct plan_data *a, int op)
{
    return a->slices > 1 && passes(a, op) && a->op[op].slice == WHOLE_BATCH;
}
static bool before_another(const struct plan_data *a, int op)
{
    return of_slice(a, op) && a->op[op].slice + 1 < (int)a->slices;
}
static bool forward_before_another(const struct plan_data *a, int op)
{
    return before_another(a, op) && forward(a, op) && !a->op[op].recompute;
}
static bool backward_before_another(const struct plan_data *a, int op)
{
    return before_another(a, op) && backward(a, op);
}
static bool sums_slices(const struct plan_data *a, int op)
{
    return a->slices > 1 && op > 0 && is(a, op, OP_ACCUMULATE) && a->op[op].slice != WHOLE_BATCH;
}

/* A buffer that slices write parts of. */
static bool joint(const struct plan_data *a, int op, int id)
{
    return a->op[op].slice != WHOLE_BATCH && id >= 0 && a->buffer[id].slice == WHOLE_BATCH;
}
static bool writes_part(const struct plan_data *a, int op) { return forward(a, op) && joint(a, op, a->op[op].y); }
static bool adds_part(const struct plan_data *a, int op) { return backward(a, op) && joint(a, op, a->op[op].dx[0]); }
static bool reads_joint(const struct plan_data *a, int op)
{
    const int id = a->op[op].x[0];
    bool written = false;
    for (int i = 0; id >= 0 && i < op; i++) written |= writes_part(a, i) && a->op[i].y == id;
    return of_batch(a, op) && forward(a, op) && written;
}

/* The second of two backwards of consecutive slices of a node. */
static bool after_slice_before(const struct plan_data *a, int op)
{
    return op > 0 && of_slice(a, op) && backward(a, op) && backward(a, op - 1) &&
           a->op[op - 1].node == a->op[op].node && a->op[op - 1].slice + 1 == a->op[op].slice &&
           a->op[op - 1].parts == a->op[op].parts;
}

/* The update right after the last slice's gradients, which need no parameters. */
static bool updates_slices(const struct plan_data *a, int op)
{
    const struct op *last = &a->op[op > 0 ? op - 1 : 0];
    return updates(a, op) && last->gradients == a->op[op].gradients && last->slice > 0 && last->parts == PART_PARAMS;
}

AIMED(slice_for_the_batch, of_slice, slice, WHOLE_BATCH)
AIMED(batch_for_a_slice, of_batch, slice, 0)
AIMED(slice_of_none, of_slice, slice, (int)a->slices)
AIMED(forward_of_the_next_slice, forward_before_another, slice, a->op[op].slice + 1)
AIMED(backward_of_the_next_slice, backward_before_another, slice, a->op[op].slice + 1)
AIMED(sum_of_the_batch, sums_slices, slice, WHOLE_BATCH)

/* The same of the node of an op of a slice, and of the plan. */
static bool node_of_the_batch(struct plan_data *a, struct source *s)
{
    const int op = op_that(a, s, of_slice);
    if (op >= 0) a->node[a->op[op].node].whole = true;
    return op >= 0;
}

static bool slices_more(struct plan_data *a, struct source *s)
{
    (void)s;
    return a->slices++ > 1;
}

static bool buffer_of_another_slice(struct plan_data *a, struct source *s)
{
    struct buffer *b = &a->buffer[draw_below(s, (uint32_t)a->buffers)];
    if (a->slices > 1) b->slice = b->slice == WHOLE_BATCH ? 1 : (b->slice + 1) % (int)a->slices;
    return a->slices > 1;
}

/* Of a joint buffer a slice's part is in another one. */
static bool part_elsewhere(struct plan_data *a, struct source *s)
{
    const int op = op_that(a, s, writes_part);
    if (op < 0) return false;
    a->op[op].y = another(a, a->op[op].y, op);
    live_again(a);
    return true;
}

static bool gradient_part_elsewhere(struct plan_data *a, struct source *s)
{
    const int op = op_that(a, s, adds_part);
    if (op < 0) return false;
    a->op[op].dx[0] = another(a, a->op[op].dx[0], op);
    live_again(a);
    return true;
}

/* A joint buffer ends before the op that reads it whole. */
static bool joint_ends_early(struct plan_data *a, struct source *s)
{
    const int read = op_that(a, s, reads_joint);
    if (read < 0) return false;
    struct buffer *b = &a->buffer[a->op[read].x[0]];
    while (b->death >= read || !uses(&a->op[b->death], (int)(b - a->buffer))) a->live[b->death--] -= b->bytes;
    return true;
}

static bool slices_exchanged(struct plan_data *a, struct source *s)
{
    return exchange(a, op_that(a, s, after_slice_before));
}

static bool update_before_the_last_slice(struct plan_data *a, struct source *s)
{
    return exchange(a, op_that(a, s, updates_slices));
}

/* And it is of the slice whose gradient is there. */
static bool update_of_a_slice(struct plan_data *a, struct source *s)
{
    const int op = op_that(a, s, updates_slices);
    if (op >= 0) a->op[op].slice = 0;
    return exchange(a, op);
}

/* The gradients of the last slice are not added. */
static bool partial_not_added(struct plan_data *a, struct source *s)
{
    const int op = op_that(a, s, updates_slices);
    if (op < 0) return false;
    memmove(&a->op[op - 1], &a->op[op], (size_t)(a->ops - op) * sizeof *a->op);
    a->ops--;
    live_again(a);
    return true;
}

/* Alters a step of a slice of the schedule; false: there is none. */
static bool alter_step(struct plan_data *a, struct source *s, bool change(struct schedule *schedule, size_t step))
{
    static char text[1 << 16];
    struct schedule schedule;
    struct region *region = region_create();
    cr_assert(schedule_parse(a->schedule, region, &schedule) == ST_OK && strlen(a->schedule) < sizeof text);
    const size_t from = draw_below(s, (uint32_t)schedule.steps);
    bool changed = false;
    for (size_t i = 0; i < schedule.steps && !changed; i++) {
        const size_t at = (from + i) % schedule.steps;
        changed = schedule.step[at].slice != WHOLE_BATCH && change(&schedule, at);
    }
    if (changed) a->schedule = strncpy(text, schedule_print(&schedule, region), sizeof text - 1);
    region_destroy(region);
    return changed;
}

/* Of a backward, since a forward may be dead. */
static bool next_slice(struct schedule *w, size_t i)
{
    return w->step[i].kind == STEP_BACKWARD && w->step[i].slice++ >= 0;
}
static bool all_slices(struct schedule *w, size_t i) { return (w->step[i].slice = WHOLE_BATCH) < 0; }
static bool shorter(struct schedule *w, size_t i) { return w->step[i].to - w->step[i].from > 1 && w->step[i].to--; }
static bool once_more(struct schedule *w, size_t i)
{
    const struct step step = w->step[i];
    region_grow(w->region, &w->step, (int)w->steps, sizeof step);
    w->steps++;
    memmove(&w->step[i + 1], &w->step[i], (w->steps - 1 - i) * sizeof step);
    return true;
}
static bool left_out(struct schedule *w, size_t i)
{
    w->steps--;
    memmove(&w->step[i], &w->step[i + 1], (w->steps - i) * sizeof *w->step);
    return true;
}

static bool step_of_the_next_slice(struct plan_data *a, struct source *s) { return alter_step(a, s, next_slice); }
static bool step_of_all_slices(struct plan_data *a, struct source *s) { return alter_step(a, s, all_slices); }
static bool step_shorter(struct plan_data *a, struct source *s) { return alter_step(a, s, shorter); }
static bool step_twice(struct plan_data *a, struct source *s) { return alter_step(a, s, once_more); }
static bool step_left_out(struct plan_data *a, struct source *s) { return alter_step(a, s, left_out); }

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
    {"an op of a slice for the batch", slice_for_the_batch, "slice -1; expected a slice"},
    {"an op of the batch for a slice", batch_for_a_slice, "slice 0; expected the whole batch"},
    {"an op of no slice", slice_of_none, ": slice is "},
    {"a forward of the next slice", forward_of_the_next_slice, "a first forward; expected "},
    {"a backward of the next slice", backward_of_the_next_slice, "out of order; expected the backward of "},
    {"a sum of all slices", sum_of_the_batch, "expected "},
    {"a sliced node that is whole", node_of_the_batch, "expected the whole batch"},
    {"more slices", slices_more, NULL},
    {"a buffer of another slice", buffer_of_another_slice, "is of slice "},
    {"a part of a joint value elsewhere", part_elsewhere, "expected "},
    {"a part of a joint gradient elsewhere", gradient_part_elsewhere, "expected "},
    {"a joint buffer that ends early", joint_ends_early, "expected it to be alive here"},
    {"two slices exchanged", slices_exchanged, "out of order; expected the backward of slice "},
    {"an update before the last slice", update_before_the_last_slice, "which holds nothing yet"},
    {"an update of a slice", update_of_a_slice, "slice 0; expected the whole batch"},
    {"a partial gradient that is not added", partial_not_added, "which holds nothing yet"},
    {"a step of the next slice", step_of_the_next_slice, NULL},
    {"a step of all slices", step_of_all_slices, NULL},
    {"a shorter step of a slice", step_shorter, NULL},
    {"a step of a slice twice", step_twice, NULL},
    {"a step of a slice left out", step_left_out, NULL},
};
