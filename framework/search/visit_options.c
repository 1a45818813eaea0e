#include "search/visit_options.h"

#include "search/limits.h"

struct front *visit_cell(const struct optimum *o, const struct visit *v)
{
    const int shift = *stages_shift(&o->stages, v->first, v->last);
    const size_t place = (size_t)(v->first - shift) * (size_t)o->stages.count + (size_t)(v->last - shift);
    const size_t block = (size_t)o->solution->block[place];
    return &o->solution->cell[block * FRONTS + (size_t)v->outlives * 2 + v->tail];
}

bool visit_needs(const struct optimum *o, int first, int last, bool tail)
{
    return o->reads[2 * last + tail] || (first < last && o->reader[first] < last);
}

bool visit_is_first(const struct optimum *o, const struct visit *v)
{
    return v->last + 1 == o->stages.count && !v->tail;
}

/* Stashes and masks of stages [from, to). */
static size_t once_of(const struct optimum *o, int from, int to) { return o->once[to] - o->once[from]; }

const struct run *visit_run(const struct optimum *o, int first, int last)
{
    if (last - first >= o->stages.reach) return NULL;
    return o->stages.run[first * o->stages.reach + last - first];
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* What is kept of a visit's last stage, NULL: nothing. */
static const struct tail *visit_tail(const struct optimum *o, const struct visit *v)
{
    return v->tail ? &o->stages.stage[v->last].tail : NULL;
}

/* Live bytes of the last stage before the visit reaches it: its gradient, and its saved tensors where tail. */
static size_t beyond(const struct optimum *o, const struct visit *v)
{
    const struct stage *last = &o->stages.stage[v->last];
    const struct tail *tail = visit_tail(o, v);
    size_t bytes = visit_is_first(o, v) ? 0 : last->gradient;
    if (tail) bytes += tail->keep - last->once + (tail->outlives ? last->output : 0);
    return bytes;
}

static void try_last(const struct optimum *o, const struct visit *v, struct option_search *search)
{
    const struct tail *tail = visit_tail(o, v);
    const struct run *run = visit_run(o, v->first, v->last);
    struct visit_option option = {.kind = LAST, .at = v->last};
    if (tail && v->first == v->last && tail->reads) {
        option.kind = READY;
        option.cost.floor = tail->backward[v->outlives];
        search->look(search, &option);
        return;
    }
    for (int i = 0; run && !v->tail && i < run->last[v->outlives].count && !search->taken; i++) {
        option.variant = &run->last[v->outlives].variant[i];
        option.cost = (struct alternative){.floor = option.variant->backward, .time = option.variant->time};
        search->look(search, &option);
    }
}

static void try_early(const struct optimum *o, const struct visit *v, struct option_search *search)
{
    if (search->taken || visit_is_first(o, v) || visit_needs(o, v->last, v->last, v->tail)) return;
    struct visit_option option = {.kind = EARLY, .at = v->last};
    if (v->tail) {
        option.cost.floor = visit_tail(o, v)->backward[0];
    } else {
        option.variant = &visit_run(o, v->last, v->last)->last[0].variant[0];
        option.cost.floor = option.variant->backward;
        option.cost.time = option.variant->time;
    }
    bool held = v->outlives || (v->first < v->last && visit_needs(o, v->first, v->last - 1, false));
    if (held) option.cost.floor += o->stages.stage[v->first].input;
    if (v->first < v->last) {
        option.cost.floor += once_of(o, v->first, v->last);
        option.a = (struct visit){v->first, v->last - 1, v->outlives, 0};
        option.cost.a = visit_cell(o, &option.a);
    }
    search->look(search, &option);
}

static void try_runs(const struct optimum *o, const struct visit *v, struct option_search *search)
{
    const bool first = visit_is_first(o, v);
    for (int at = v->first; at < v->last && !search->taken; at++) {
        const struct run *run = visit_run(o, v->first, at);
        if (!run) break;
        const size_t others = beyond(o, v) + (first ? 0 : once_of(o, at + 1, v->last + 1));
        for (int i = 0; i < run->through[v->outlives].count && !search->taken; i++) {
            const struct variant *variant = &run->through[v->outlives].variant[i];
            if (!first && !variant->outlives && !visit_needs(o, at + 1, v->last, v->tail))
                continue; /* it would be dead */
            struct visit_option option = {.kind = RUN, .at = at, .variant = variant};
            option.a = (struct visit){at + 1, v->last, variant->outlives, v->tail};
            option.cost = (struct alternative){
                .floor = larger((first ? variant->forward : variant->again) + others, variant->backward),
                .shift = variant->keep,
                .time = o->forward[at + 1] - o->forward[v->first] + variant->time,
                .a = visit_cell(o, &option.a)};
            search->look(search, &option);
        }
    }
}

/* Live bytes while the visit passes stage at; tail: what that stage saves and keeps, NULL: nothing. */
static size_t pass_peak(const struct optimum *o, const struct visit *v, int at, const struct tail *tail)
{
    const struct stage *s = &o->stages.stage[at];
    const bool first = visit_is_first(o, v);
    size_t peak = first ? s->held : s->held_again;
    if (at > v->first) {
        peak = tail ? (first ? tail->forward : tail->again) : (first ? s->passed : s->passed_again);
        peak += o->stages.stage[v->first].input;
    }
    peak += first ? once_of(o, v->first, at) : once_of(o, v->first, v->last + 1) - s->once;
    return peak + beyond(o, v);
}

bool visit_may_end(const struct solution *solution, int first, int at)
{
    return !solution->cut || solution->cut[at] || at - first <= CHAIN_NEAR;
}

static void try_passes(const struct optimum *o, const struct visit *v, struct option_search *search)
{
    const bool first = visit_is_first(o, v);
    size_t passed = 0;
    for (int at = v->first + 1; at <= v->last && !search->taken; at++) {
        const struct stage *s = &o->stages.stage[at - 1];
        if (!s->again) return;
        size_t before = passed;
        passed = larger(passed, pass_peak(o, v, at - 1, NULL));
        if (!visit_may_end(o->solution, v->first, at)) continue;
        if (!first && !visit_needs(o, at, v->last, v->tail)) continue; /* the pass would be dead */
        const int tails = at - 1 > v->first;                           /* there a run does the same */
        for (int t = 0; t <= tails && !search->taken; t++) {
            if (v->first && !v->outlives && !visit_needs(o, v->first, at - 1, t)) continue; /* here too */
            const struct tail *tail = t ? &s->tail : NULL;
            struct visit_option option = {.kind = PASS, .at = at};
            option.a = (struct visit){at, v->last, tail && tail->outlives, v->tail};
            option.b = (struct visit){v->first, at - 1, v->outlives, t};
            option.cost = (struct alternative){.floor = tail ? larger(before, pass_peak(o, v, at - 1, tail)) : passed,
                                               .shift = o->stages.stage[v->first].input + once_of(o, v->first, at - 1) +
                                                        (tail ? tail->keep : s->once),
                                               .time = o->forward[at] - o->forward[v->first],
                                               .a = visit_cell(o, &option.a),
                                               .b = visit_cell(o, &option.b)};
            search->look(search, &option);
        }
    }
}

static void try_twice(const struct optimum *o, const struct visit *v, struct option_search *search)
{
    const struct stage *last = &o->stages.stage[v->last];
    if (v->tail || v->first == v->last) return;
    const struct tail *tail = &last->tail;
    if (search->taken || (!visit_is_first(o, v) && tail->keep == last->once && !tail->outlives))
        return; /* it would be dead */
    struct visit_option option = {.kind = TWICE, .at = v->last};
    for (int at = v->first; at <= v->last; at++)
        if (!o->stages.stage[at].again) return;
    for (int at = v->first; at <= v->last; at++)
        option.cost.floor = larger(option.cost.floor, pass_peak(o, v, at, at == v->last ? tail : NULL));
    option.cost.time = o->forward[v->last + 1] - o->forward[v->first];
    option.a = (struct visit){v->first, v->last, v->outlives, true};
    option.cost.a = visit_cell(o, &option.a);
    search->look(search, &option);
}

void visit_options(const struct optimum *o, const struct visit *v, struct option_search *search)
{
    try_last(o, v, search);
    try_early(o, v, search);
    try_runs(o, v, search);
    try_passes(o, v, search);
    try_twice(o, v, search);
}
