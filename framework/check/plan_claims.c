#include "check/plan_claims.h"

#include <math.h>
#include <string.h>

#include "base/region.h"
#include "plan/schedule.h"

/* Sums in another order may be rounded differently. */
static const double rounding = 1e-12;

static enum status check_real(const char *name, double claimed, double expected)
{
    if (fabs(claimed - expected) <= rounding * fabs(expected)) return ST_OK;
    return fail(ST_DIFFERS, "%s is %.17g; expected %.17g", name, claimed, expected);
}

static enum status check_reals(const struct plan_data *a, const struct outcome *o)
{
    double real[REALS] = {[REAL_RECOMPUTE_FLOPS] = o->recompute_flops, [REAL_TIME] = o->time}, least = 0;
    for (int i = 0; i < a->nodes; i++) {
        const struct plan_data_node *node = &a->node[i];
        real[REAL_FORWARD_FLOPS] += node->forward_flops + node->once_flops;
        least += node->forward_time + node->once_time;
        for (unsigned part = 0; part < 2; part++) {
            if (!(o->parts[i] & 1u << part)) continue;
            real[REAL_BACKWARD_FLOPS] += node->backward_flops[part];
            least += node->backward_time[part];
        }
    }
    real[REAL_SLOWDOWN] = least > 0 ? o->time / least : 1;
    for (int i = 0; i < REALS; i++) TRY(check_real(plan_data_real_names[i], a->real[i], real[i]));
    return ST_OK;
}

/* The static categories, then those of the arena. */
static void expect_memory(const struct plan_data *a, const struct outcome *o, size_t memory[PLAN_DATA_CATEGORIES])
{
    size_t parameters = 0, trained = 0, gradients = 0, state = 0;
    for (int i = 0; i < a->parameters; i++) {
        const size_t bytes = round_up(a->parameter[i].elements * sizeof(float));
        parameters += bytes;
        if (a->parameter[i].frozen) continue;
        trained += bytes;
        if (!a->node[a->parameter[i].node].footprint.gradients) gradients += bytes;
    }
    memory[STATIC_PARAMETERS] = parameters;
    memory[STATIC_GRADIENTS] = gradients;
    memory[STATIC_OPTIMIZER] = trained * a->optimizer_copies;
    for (int i = 0; i < a->states; i++) state += round_up(a->state[i].elements * sizeof(float));
    memory[STATIC_STATE] = state;
    memory[STATIC_INPUTS] = round_up(a->batch_bytes) + round_up(a->batch * a->labels * sizeof(int32_t));
    memory[STATIC_DEVICE] = a->device_bytes;
    memcpy(memory + STATICS, o->peak, sizeof o->peak);
}

static enum status check_counts(const struct plan_data *a, const struct outcome *o, int dropped)
{
    size_t memory[PLAN_DATA_CATEGORIES], fixed = 0;
    expect_memory(a, o, memory);
    for (int i = 0; i < PLAN_DATA_CATEGORIES; i++) {
        const char *name = i < (int)STATICS ? static_names[i] : category_names[i - (int)STATICS];
        if (a->memory[i] != memory[i])
            return fail(ST_DIFFERS, "memory of %s is %zu; expected %zu", name, a->memory[i], memory[i]);
        if (i < (int)STATICS) fixed += memory[i];
    }
    const size_t arena = o->extent > a->evaluation_arena ? o->extent : a->evaluation_arena;
    const size_t count[COUNTS] = {
        [COUNT_STATIC] = fixed,
        [COUNT_ARENA] = arena,
        [COUNT_PEAK] = fixed + arena,
        [COUNT_LIVE_PEAK] = o->live_peak,
        [COUNT_SAMPLED_FORWARD] = fixed - memory[STATIC_GRADIENTS] + o->live_forward,
        [COUNT_SAMPLED_GRADIENTS] = fixed,
        [COUNT_RECOMPUTATIONS] = (size_t)o->recomputations,
        [COUNT_DROPPED] = (size_t)dropped,
    };
    for (int i = 0; i < COUNTS; i++)
        if (a->count[i] != count[i])
            return fail(ST_DIFFERS, "%s is %zu; expected %zu", plan_data_count_names[i], a->count[i], count[i]);
    return ST_OK;
}

/* Walks through the schedule and the ops in parallel. */
struct follower {
    const struct plan_data *data;
    int at, dropped; /* at: op */
    int *forwards;   /* by slice: nodes below have run */
};

/* Whether the next forward or backward op is that kind of step of node and slice. */
static bool runs(struct follower *f, enum step_kind kind, int node, int slice)
{
    const struct plan_data *a = f->data;
    while (f->at < a->ops && a->op[f->at].kind != OP_FORWARD && a->op[f->at].kind != OP_BACKWARD) f->at++;
    if (f->at == a->ops) return false;
    const struct op *op = &a->op[f->at];
    return op->node == node && op->slice == slice && (op->kind == OP_FORWARD) == (kind == STEP_FORWARD);
}

static enum status follow(struct follower *f, enum step_kind kind, int node, int slice)
{
    const struct plan_data *a = f->data;
    const int k = slice == WHOLE_BATCH ? 0 : slice, last = slice == WHOLE_BATCH ? (int)a->slices - 1 : slice;
    bool first = kind == STEP_FORWARD && node == f->forwards[k];
    if (kind == STEP_FORWARD && a->operators && !a->traced[node].forward) {
        f->forwards[k] += first;
        return ST_OK;
    }
    for (int i = k; first && i <= last; i++) f->forwards[i]++;
    while (kind == STEP_BACKWARD && runs(f, kind, node, slice)) f->at++; /* one op or two */
    if (kind == STEP_PARAMS && runs(f, kind, node, slice) && a->op[f->at].parts == PART_PARAMS) f->at++;
    if (kind != STEP_FORWARD) return ST_OK;
    if (runs(f, kind, node, slice)) {
        f->at++;
    } else if (first || (!a->drop_dead && !(a->operators && a->traced[node].runs_once))) {
        return fail(ST_DIFFERS, "op %d does not follow the schedule; expected the forward of node %d (%s)", f->at, node,
                    a->node[node].name);
    } else {
        f->dropped++;
    }
    return ST_OK;
}

/* A step at one node, which is whole, or all slices in turn, or the step's. */
static enum status follow_node(struct follower *f, const struct step *s, int node)
{
    const bool all = s->slice == WHOLE_BATCH;
    if (f->data->node[node].whole) return follow(f, s->kind, node, WHOLE_BATCH);
    for (int k = 0; all && s->kind == STEP_BACKWARD && k < (int)f->data->slices; k++)
        TRY(follow(f, STEP_PARAMS, node, k)); /* the first halves of all slices come first */
    for (int k = all ? 0 : s->slice, end = all ? (int)f->data->slices : s->slice + 1; k < end; k++)
        TRY(follow(f, s->kind, node, k));
    return ST_OK;
}

static enum status follow_schedule(const struct plan_data *a, const struct schedule *schedule, int *dropped)
{
    struct follower f = {.data = a};
    struct slicing slicing = {.nodes = a->nodes, .slices = (int)a->slices};
    bool *whole;
    NEW(schedule->region, whole, (size_t)a->nodes);
    NEW(schedule->region, f.forwards, a->slices);
    for (int i = 0; i < a->nodes; i++) whole[i] = a->node[i].whole;
    slicing.whole = whole;
    TRY(schedule_check(schedule, &slicing, a->evaluate));
    for (size_t i = 0; i < schedule->steps; i++) {
        const struct step *s = &schedule->step[i];
        for (int k = 0; k < s->to - s->from; k++)
            TRY(follow_node(&f, s, s->kind == STEP_FORWARD ? s->from + k : s->to - 1 - k));
    }
    runs(&f, STEP_FORWARD, -1, WHOLE_BATCH);
    if (f.at < a->ops) return fail(ST_DIFFERS, "op %d does not follow the schedule; expected no more ops", f.at);
    *dropped = f.dropped;
    return ST_OK;
}

/* The ops must be those of the schedule, except for dropped recomputations. */
static enum status check_schedule(const struct plan_data *a, int *dropped)
{
    struct schedule schedule;
    region_auto *region = region_create();
    enum status status = schedule_parse(a->schedule, region, &schedule);
    if (status == ST_OK) status = follow_schedule(a, &schedule, dropped);
    return status == ST_SPEC ? fail(ST_DIFFERS, "%s", status_message()) : status;
}

enum status plan_claims_check(const struct plan_data *a, const struct outcome *outcome)
{
    char text[128];
    int dropped = 0;
    TRY(check_schedule(a, &dropped));
    TRY(check_counts(a, outcome, dropped));
    TRY(check_reals(a, outcome));
    const struct op *peak = &a->op[outcome->peak_op];
    op_text(peak, plan_data_op_name(a, peak), text);
    if (strcmp(a->peak_op, text)) return fail(ST_DIFFERS, "peak_op is '%s'; expected '%s'", a->peak_op, text);
    const struct digest digest = ops_digest(a->op, a->ops, a->buffer, a->buffers);
    if (strcmp(a->hash, digest_print(digest, text)))
        return fail(ST_DIFFERS, "hash is %s; ops, buffers and offsets have %s: one of them was altered", a->hash, text);
    return ST_OK;
}
