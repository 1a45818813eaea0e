/* Answers as one JSON object each, for programs. Bytes are numbers, never texts. */
#include <jansson.h>
#include <math.h>

#include "analysis/plan_query.h"

static json_t *integer(uint64_t value) { return json_integer((json_int_t)value); }

/* settings: what sets the same plan on the command line, each after "policy."; null: the spec's own. */
static json_t *trial_json(const struct trial *t)
{
    json_t *one = json_object();
    json_object_set_new(one, "policy", json_string(t->policy->name));
    json_object_set_new(one, "settings", t->own ? json_null() : json_string(t->settings));
    json_object_set_new(one, "own", json_boolean(t->own));
    json_object_set_new(one, "live_peak_bytes", integer(t->live_peak));
    json_object_set_new(one, "arena_bytes", integer(t->arena));
    json_object_set_new(one, "peak_bytes", integer(t->peak));
    json_object_set_new(one, "slowdown", json_real(t->slowdown));
    json_object_set_new(one, "peak_op", json_string(t->peak_op));
    return one;
}

static json_t *judged_json(const struct answer *a, const struct trial *t)
{
    json_t *one = trial_json(t);
    json_object_set_new(one, "share_percent",
                        json_real(a->baseline ? 100 * (double)t->arena / (double)a->baseline : 0));
    json_object_set_new(one, "gap_percent", json_real(t->gap));
    json_object_set_new(one, "pareto", json_boolean(t->best));
    return one;
}

static json_t *rows_json(const struct answer *a)
{
    json_t *rows = json_array();
    for (int i = 0; i < a->rows; i++) json_array_append_new(rows, judged_json(a, a->row[i]));
    return rows;
}

static json_t *refusals_json(const struct answer *a)
{
    json_t *all = json_array();
    for (int i = 0; i < a->tries.refusals; i++) {
        json_t *one = json_object();
        json_object_set_new(one, "policy", json_string(a->tries.refusal[i].policy->name));
        json_object_set_new(one, "why", json_string(a->tries.refusal[i].why));
        json_array_append_new(all, one);
    }
    return all;
}

static json_t *begin(const struct answer *a)
{
    json_t *all = json_object();
    json_object_set_new(all, "name", json_string(a->job->spec->name));
    json_object_set_new(all, "policy", json_string(a->job->spec->policy->name));
    json_object_set_new(all, "batch", json_integer(a->job->spec->batch));
    return all;
}

static void end(json_t *all, FILE *out)
{
    json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    fputc('\n', out);
    json_decref(all);
}

/* The rows, and what is the same for all of them. share_of_bytes: what a share of 100 % is, the live peak of store_all,
 * relus as written, outputs kept. */
static void add_rows(json_t *all, const struct answer *a)
{
    json_object_set_new(all, "static_bytes", integer(plan_static(a->job->plan)));
    json_object_set_new(all, "share_of_bytes", integer(a->baseline));
    json_object_set_new(all, "plans", rows_json(a));
    json_object_set_new(all, "front_points", json_integer(a->tries.points));
    json_object_set_new(all, "front_points_left_out", json_integer(a->tries.left_out));
    json_object_set_new(all, "left_out", refusals_json(a));
}

void json_pareto(const struct answer *a, FILE *out)
{
    json_t *all = begin(a);
    add_rows(all, a);
    end(all, out);
}

void json_min_memory(const struct answer *a, FILE *out)
{
    json_t *all = begin(a);
    json_object_set_new(all, "slowdown", json_real(a->query->slowdown));
    add_rows(all, a);
    end(all, out);
}

void json_explain(const struct answer *a, FILE *out)
{
    const struct plan *plan = a->job->plan;
    char op[128];
    json_t *all = begin(a);
    json_object_set_new(all, "peak_bytes", integer(plan_peak(plan)));
    json_object_set_new(all, "live_peak_bytes", integer(plan->live_peak));
    json_object_set_new(all, "peak_op", json_string(plan_op_text(plan, plan->peak_op, op)));
    json_object_set_new(all, "memory_floor_bytes", integer(a->job->bounds.memory));
    json_object_set_new(all, "memory_floor_node", json_string(a->job->graph->node[a->job->bounds.memory_node].name));
    add_rows(all, a);
    end(all, out);
}

void json_max_batch(const struct answer *a, FILE *out)
{
    json_t *all = begin(a), *rows = json_array();
    const double slowdown = a->query->slowdown;
    for (int i = 0; i < a->batches.rows; i++) {
        const struct batch_row *row = &a->batches.row[i];
        json_t *one = row->fits ? trial_json(&row->at) : json_object();
        json_object_set_new(one, "policy", json_string(row->policy->name));
        json_object_set_new(one, "own", json_boolean(row->own));
        json_object_set_new(one, "largest_batch", json_integer(row->fits));
        json_object_set_new(one, "fails_batch", row->fails ? json_integer(row->fails) : json_null());
        json_object_set_new(one, "fails_peak_bytes", row->next ? integer(row->next) : json_null());
        json_object_set_new(one, "fails_because", row->why ? json_string(row->why) : json_null());
        json_object_set_new(one, "odd_batch", row->odd ? json_integer(row->odd) : json_null());
        json_array_append_new(rows, one);
    }
    json_object_set_new(all, "memory_bytes", integer(a->query->memory));
    json_object_set_new(all, "slowdown", isfinite(slowdown) ? json_real(slowdown) : json_null());
    json_object_set_new(all, "largest_batch", json_integer(a->batches.row[0].fits));
    json_object_set_new(all, "policies", rows);
    end(all, out);
}
