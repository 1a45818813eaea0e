#include "search/schedule_search.h"

#include <math.h>

#include "search/bounds.h"
#include "search/drop_search.h"
#include "search/dtr_simulation.h"
#include "search/state_search.h"

enum {
    DTR_LIMITS = 10,
    DTR_NODES_MAX = 10000, /* for the time that some forty simulations take */
    COMPLETE_NODES =
        20, /* up to these, a beam of their width leaves nothing out as a rule, and all limits are searched */
    COMPLETE_WIDTH = 20000,
    FRONT_LIMITS = 16,
    LEAST_RESOLUTION = 500
};

/* Beams that leave out different states: states are either compared with more others, or only with those of about as
 * many bytes. */
static const int levels[] = {1, 8, 16, 48};

/* States expanded of each position by one beam, of a network of WIDE_NODES, and fewer by the third power of the nodes
 * of a larger one, to take as much time; and how many of levels are tried. Where hardly anything fits, few states do.
 */
enum { WIDE_NODES = 64 };
enum beam { BEAM_LEAST, BEAM_NARROW, BEAM_WIDE };
static const struct {
    int width, levels;
} beams[] = {[BEAM_LEAST] = {200, 1}, [BEAM_NARROW] = {600, 4}, [BEAM_WIDE] = {2000, 4}};

/* What the open relus of a search keep. */
struct schedule_search {
    int models; /* 0: the network has too many nodes */
    struct step_model model[2];
    struct dtr_simulation simulation;
    size_t all; /* bytes with which nothing is evicted; 0: no simulation */
};

static const struct network *keep_sign_bits(const struct network *network, struct region *region)
{
    struct network *copy = network_copy(network, region);
    for (int i = 0; i < network->graph->nodes; i++)
        if (network_relu_open(network, i)) footprint_keep_sign_bits(&copy->binding[i].footprint, true);
    return copy;
}

/* Of the scores that the paper compares, the others (local, least recently used, by size) were slower than the front at
 * all of 27 budgets of two traces and three networks of long shortcuts. */
static void add_dtr(struct optimum *o, size_t limit)
{
    struct schedule_search *s = o->search;
    static const char *const names[DTR_SCORES] = {"dtr", "dtr by h_MSPS"};
    for (enum dtr_score score = 0; score < DTR_SCORES; score++) {
        struct region *region = region_create();
        struct schedule schedule = schedule_empty(region);
        struct dtr_result result;
        s->simulation.score = score;
        if (dtr_simulation_schedule(&s->simulation, limit, &schedule, &result) == ST_OK) {
            if (!s->all) s->all = result.peak;
            candidate_points_add(&o->candidates, o->network, o->stages.rng, &schedule, names[score], o->region);
        }
        region_destroy(region);
    }
}

static void add_sequence(struct optimum *o, const struct step_model *model, const struct sequence *sequence,
                         const char *policy, struct region *region)
{
    struct schedule schedule = schedule_empty(region);
    sequence_schedule(model, sequence, &schedule);
    candidate_points_add(&o->candidates, o->network, o->stages.rng, &schedule, policy, o->region);
}

static void add_dropped(struct optimum *o, size_t limit)
{
    for (int i = 0; i < o->search->models; i++) {
        struct region *region = region_create();
        const struct step_model *model = &o->search->model[i];
        const struct sequence sequence = drop_search(model, limit, region);
        if (sequence.length) add_sequence(o, model, &sequence, "a search over dropped outputs", region);
        region_destroy(region);
    }
}

void schedule_search_prepare(struct optimum *o)
{
    const struct lower_options options = {.drop_dead = true, .rng = o->stages.rng};
    const int nodes = o->network->graph->nodes;
    struct schedule_search *s;
    NEW(o->region, s, 1);
    o->search = s;
    if (nodes <= STATE_NODES_MAX) {
        s->model[s->models++] = step_model_create(o->network, &options, o->region);
        if (network_any_relu_open(o->network))
            s->model[s->models++] = step_model_create(keep_sign_bits(o->network, o->region), &options, o->region);
    }
    if (nodes > DTR_NODES_MAX || (o->stages.count == nodes && nodes <= STATE_NODES_MAX)) return;
    if (dtr_simulation_create(o->network, &options, o->region, &s->simulation) != ST_OK) return;
    add_dtr(o, SIZE_MAX);
    for (size_t k = 1; k < DTR_LIMITS; k++) add_dtr(o, s->all / DTR_LIMITS * k);
}

/* Searches for a schedule of at most limit bytes that takes less time than *below, and lowers that; returns whether
 * there is none that takes less. */
static bool search_below(struct optimum *o, size_t limit, double *below, const struct state_effort *effort)
{
    struct schedule_search *s = o->search;
    bool proven = s->models == 1;
    for (int i = 0; i < s->models; i++) {
        struct region *region = region_create();
        struct state_search_result r = state_search(&s->model[i], limit, *below, *effort, region);
        proven &= r.proven;
        if (r.found) {
            *below = sequence_evaluate(&s->model[i], &r.sequence, limit).time;
            add_sequence(o, &s->model[i], &r.sequence, "a search over states", region);
        }
        region_destroy(region);
    }
    return proven;
}

/* The time of the front's fastest schedule within limit bytes, less what sums may be rounded by. */
static double time_within(const struct optimum *o, size_t limit)
{
    const int at = front_at(&o->front, limit);
    return at < 0 ? INFINITY : o->front.point[at].time * (1 - 1e-12);
}

static bool search_beams(struct optimum *o, size_t limit, double below, enum beam beam)
{
    const double share = (double)WIDE_NODES / o->network->graph->nodes;
    int width = beams[beam].width;
    bool proven = false;
    if (o->network->graph->nodes <= COMPLETE_NODES) width = COMPLETE_WIDTH;
    if (share < 1) width = (int)(width * share * share * share);
    for (int i = 0; i < beams[beam].levels && !proven; i++) {
        const struct state_effort effort = {width / levels[i] + 1, levels[i]};
        proven = search_below(o, limit, &below, &effort);
    }
    return proven;
}

static bool search_within(struct optimum *o, size_t limit, enum beam beam)
{
    double time = time_within(o, limit);
    if (!o->search || !limit) return false;
    if (o->search->all > limit) {
        add_dtr(o, limit);
        for (size_t k = 1; k < DTR_LIMITS && beam != BEAM_LEAST; k++)
            add_dtr(o, limit + (o->search->all - limit) / DTR_LIMITS * k);
        if (beam != BEAM_LEAST) add_dropped(o, limit);
        optimum_publish(o);
        time = time_within(o, limit);
    }
    const bool proven = search_beams(o, limit, time, beam);
    optimum_publish(o);
    return proven;
}

bool schedule_search_within(struct optimum *o, size_t limit, bool wide)
{
    return search_within(o, limit, wide ? BEAM_WIDE : BEAM_NARROW);
}

/* Bisects between a bound and the least found; whether a limit has a schedule need not be monotone here, so that the
 * limit found need not be the least. */
void schedule_search_least(struct optimum *o)
{
    if (!o->search || !o->search->models) return;
    const bool small = o->network->graph->nodes <= COMPLETE_NODES;
    size_t no = bounds_find(o->network, 1).memory, yes = o->front.point[0].peak;
    if (no) no--;
    while (yes > no + 1 && (small || yes - no > yes / LEAST_RESOLUTION)) {
        const size_t at = no + (yes - no) / 2;
        search_within(o, at, BEAM_LEAST);
        if (o->front.point[0].peak <= at)
            yes = o->front.point[0].peak;
        else
            no = at;
    }
    schedule_search_within(o, yes, false);
}

void schedule_search_front(struct optimum *o)
{
    if (!o->search || !o->search->models) return;
    schedule_search_least(o);
    const size_t least = o->front.point[0].peak, most = o->front.point[o->front.count - 1].peak;
    if (o->network->graph->nodes > COMPLETE_NODES) {
        for (size_t k = 1; k < FRONT_LIMITS; k++)
            schedule_search_within(o, least + (most - least) / FRONT_LIMITS * k, false);
        return;
    }
    for (size_t limit = most; limit >= least;) { /* each time the step below the last one */
        schedule_search_within(o, limit, true);
        const int at = front_at(&o->front, limit);
        limit = o->front.point[at].peak - 1;
    }
}
