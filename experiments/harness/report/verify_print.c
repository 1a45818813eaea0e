/* The findings of verify, as text and as JSON. */
#include <string.h>

#include "analysis/figures.h"
#include "analysis/verify.h"
#include "base/units.h"

static const char *buffer_name(const struct verification *v, char text[128])
{
    const struct buffer *b = &v->data.buffer[v->moved];
    return buffer_text(b, v->data.node[b->node].name, text);
}

void verify_print_run(const struct verification *v, FILE *out)
{
    const struct result *r = v->result;
    char status[RESULT_STATUS];
    if (strcmp(r->status, "completed") == 0 || strcmp(r->variant, "plan") == 0) return;
    fprintf(out, "run       %s\n", result_status(r, status));
}

void verify_print_plan(const struct verification *v, FILE *out)
{
    const struct plan_data *a = &v->data;
    char live[UNIT_TEXT], arena[UNIT_TEXT], name[128];
    if (v->wrong)
        fprintf(out, "plan      WRONG: %s\n", v->wrong);
    else
        fprintf(out, "plan      right: %d ops, %d buffers, live peak %s, arena %s, hash %s\n", a->ops, a->buffers,
                bytes_text((double)a->count[COUNT_LIVE_PEAK], live), bytes_text((double)a->count[COUNT_ARENA], arena),
                a->hash);
    if (v->moved >= 0)
        fprintf(out, "          the hash is that of buffer %d (%s) at %zu, where placement puts it; it is at %zu\n",
                v->moved, buffer_name(v, name), v->placed, a->buffer[v->moved].offset);
}

void verify_print_bounds(const struct verification *v, FILE *out)
{
    if (v->wrong_bound)
        fprintf(out, "bounds    WRONG: %s\n", v->wrong_bound);
    else if (v->bounds_unjudged)
        fprintf(out, "bounds    not judged: %s\n", v->bounds_unjudged);
    else
        fprintf(out, "bounds    right: floors of memory and time, and the gap to them\n");
}

static void print_environment(const struct verification *v, FILE *out)
{
    const bool again = v->steps == STEPS_DIFFER;
    fprintf(out, again ? "not as it was:\n" : "it was written with:\n");
    for (int i = 0; i < v->differences; i++) {
        const struct environment_difference *s = &v->difference[i];
        fprintf(out, "  %-12s %s%s%s\n", s->name, s->a, s->b ? ", now " : "", s->b ? s->b : "");
    }
    if (again && !v->differences)
        fprintf(out, "  nothing that is known: program, libraries, machine and data are the same\n");
}

void verify_print_record(const struct verification *v, FILE *out)
{
    const struct spec *spec = v->spec;
    if (v->wrong_record)
        fprintf(out, "record    WRONG: %s\n", v->wrong_record);
    else
        fprintf(out, "record    right: run id, names, sums, summary and digests agree\n");
    if (spec->fault_kind != FAULT_NONE)
        fprintf(out, "fault     a run with a planted fault, at step %lld in node %s: no proof\n",
                (long long)spec->fault_step, spec->fault_node);
    fprintf(out, "not checked:\n");
    for (const char *const *what = verify_not_checked; *what; what++) fprintf(out, "  %s\n", *what);
}

/* A loss is 0 or not finite, or every gradient of a step is zero. */
static bool degenerate(const struct comparison *c) { return *c->remark[REASON_LOSS] || *c->remark[REASON_ZERO_STEP]; }

void verify_print_steps(const struct verification *v, FILE *out)
{
    const struct comparison *c = &v->comparison;
    switch (v->steps) {
    case STEPS_NOT_ASKED:
        return;
    case STEPS_NONE:
        fprintf(out, "steps     none in the file\n");
        return;
    case STEPS_SAME:
        fprintf(out, "steps     same bits: losses, gradients, parameters and state of %lld steps, run again%s\n",
                (long long)c->steps, degenerate(c) ? "; degenerate: proves nothing" : "");
        return;
    case STEPS_NOT_RUN:
        fprintf(out, "steps     not run again: exit code %d\n", v->code);
        break;
    case STEPS_DIFFER:
        if (c->equal)
            fprintf(out, "steps     DIFFER: %lld in the file; its spec has %lld\n", (long long)c->a.steps,
                    (long long)c->b.steps);
        else
            fprintf(out, "steps     DIFFER: first at step %lld, in %s\n", (long long)c->first_step, c->first_tensor);
    }
    print_environment(v, out);
}

/* ---- JSON ---- */

/* Every figure that the plan claims, right or wrong. */
static json_t *claim_figures(const struct plan_data *a)
{
    json_t *all = json_object();
    for (int i = 0; i < COUNTS; i++) PUT(all, plan_data_count_names[i], a->count[i]);
    for (int i = 0; i < REALS; i++) PUT(all, plan_data_real_names[i], a->real[i]);
    PUT(all, "hash", a->hash);
    return all;
}

static json_t *moved_figures(const struct verification *v)
{
    char name[128];
    json_t *all = json_object();
    PUT(all, "buffer", v->moved);
    PUT(all, "name", buffer_name(v, name));
    PUT(all, "offset", v->data.buffer[v->moved].offset);
    PUT(all, "expected", v->placed);
    return all;
}

static json_t *plan_figures_of(const struct verification *v)
{
    json_t *all = json_object();
    PUT_FLAG(all, "right", !v->wrong);
    PUT(all, "wrong", v->wrong);
    PUT(all, "moved", v->moved < 0 ? json_null() : moved_figures(v));
    PUT(all, "ops", v->data.ops);
    PUT(all, "buffers", v->data.buffers);
    PUT(all, "claims", claim_figures(&v->data));
    return all;
}

static json_t *bound_figures(const struct verification *v)
{
    json_t *all = json_object();
    PUT_FLAG(all, "judged", !v->wrong && !v->bounds_unjudged);
    PUT(all, "wrong", v->wrong_bound);
    PUT(all, "why_not", v->bounds_unjudged);
    return all;
}

static json_t *record_figures(const struct verification *v)
{
    json_t *all = json_object(), *not_checked = json_array();
    for (const char *const *what = verify_not_checked; *what; what++)
        json_array_append_new(not_checked, json_string(*what));
    PUT_FLAG(all, "judged", !v->wrong);
    PUT(all, "wrong", v->wrong_record);
    PUT_FLAG(all, "fault", v->spec && v->spec->fault_kind != FAULT_NONE);
    PUT(all, "not_checked", not_checked);
    return all;
}

static json_t *step_figures(const struct verification *v)
{
    static const char *const names[] = {"not asked", "none", "not run", "same", "differ"};
    const struct comparison *c = &v->comparison;
    json_t *all = json_object(), *first = json_object(), *changed = json_array();
    PUT(first, "step", c->first_step);
    PUT(first, "tensor", c->first_tensor);
    for (int i = 0; i < v->differences; i++) {
        const struct environment_difference *s = &v->difference[i];
        json_array_append_new(changed, json_pack("{s:s, s:s, s:s?}", "name", s->name, "then", s->a, "now", s->b));
    }
    PUT(all, "found", names[v->steps]);
    PUT(all, "compared", c->steps);
    PUT_FLAG(all, "degenerate", degenerate(c));
    json_object_set(all, "first_difference", c->differs ? first : json_null());
    PUT(all, "exit_code", v->code);
    PUT(all, "environment", changed);
    json_decref(first);
    return all;
}

void verify_json(const struct verification *v, int code, FILE *out)
{
    json_t *all = json_object();
    char status[RESULT_STATUS];
    PUT(all, "file", v->path);
    PUT(all, "status", result_status(v->result, status));
    PUT_FLAG(all, "right", code == 0);
    PUT(all, "plan", plan_figures_of(v));
    PUT(all, "bounds", bound_figures(v));
    PUT(all, "record", record_figures(v));
    PUT(all, "steps", step_figures(v));
    figures_write(all, out);
}
