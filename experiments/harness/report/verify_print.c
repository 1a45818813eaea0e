/* What verifying found, for people and for programs. */
#include <jansson.h>
#include <string.h>

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
        fprintf(out, "          the hash is that of buffer %d (%s) at %zu, where placing puts it; it is at %zu\n",
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

static void print_surroundings(const struct verification *v, FILE *out)
{
    const bool again = v->steps == STEPS_DIFFER;
    fprintf(out, again ? "not as it was:\n" : "it was written with:\n");
    for (int i = 0; i < v->surroundings; i++) {
        const struct surrounding *s = &v->surrounding[i];
        fprintf(out, "  %-12s %s%s%s\n", s->name, s->a, s->b ? ", now " : "", s->b ? s->b : "");
    }
    if (again && !v->surroundings)
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
    print_surroundings(v, out);
}

/* ---- JSON ---- */

static json_t *text_or_null(const char *text) { return text ? json_string(text) : json_null(); }

/* Every figure that the plan claims, right or wrong. */
static json_t *claims_json(const struct plan_data *a)
{
    json_t *all = json_object();
    for (int i = 0; i < COUNTS; i++)
        json_object_set_new(all, plan_data_count_names[i], json_integer((json_int_t)a->count[i]));
    for (int i = 0; i < REALS; i++) json_object_set_new(all, plan_data_real_names[i], json_real(a->real[i]));
    json_object_set_new(all, "hash", text_or_null(a->hash));
    return all;
}

static json_t *moved_json(const struct verification *v)
{
    char name[128];
    if (v->moved < 0) return json_null();
    return json_pack("{s:i, s:s, s:I, s:I}", "buffer", v->moved, "name", buffer_name(v, name), "offset",
                     (json_int_t)v->data.buffer[v->moved].offset, "expected", (json_int_t)v->placed);
}

static json_t *plan_json(const struct verification *v)
{
    json_t *all = json_object();
    json_object_set_new(all, "right", json_boolean(!v->wrong));
    json_object_set_new(all, "wrong", text_or_null(v->wrong));
    json_object_set_new(all, "moved", moved_json(v));
    json_object_set_new(all, "ops", json_integer(v->data.ops));
    json_object_set_new(all, "buffers", json_integer(v->data.buffers));
    json_object_set_new(all, "claims", claims_json(&v->data));
    return all;
}

static json_t *bounds_json(const struct verification *v)
{
    json_t *all = json_object();
    json_object_set_new(all, "judged", json_boolean(!v->wrong && !v->bounds_unjudged));
    json_object_set_new(all, "wrong", text_or_null(v->wrong_bound));
    json_object_set_new(all, "why_not", text_or_null(v->bounds_unjudged));
    return all;
}

static json_t *record_json(const struct verification *v)
{
    json_t *all = json_object(), *not_checked = json_array();
    const bool fault = v->spec && v->spec->fault_kind != FAULT_NONE;
    for (const char *const *what = verify_not_checked; *what; what++)
        json_array_append_new(not_checked, json_string(*what));
    json_object_set_new(all, "judged", json_boolean(!v->wrong));
    json_object_set_new(all, "wrong", text_or_null(v->wrong_record));
    json_object_set_new(all, "fault", json_boolean(fault));
    json_object_set_new(all, "not_checked", not_checked);
    return all;
}

static json_t *steps_json(const struct verification *v)
{
    static const char *const names[] = {"not asked", "none", "not run", "same", "differ"};
    const struct comparison *c = &v->comparison;
    json_t *all = json_object(), *first = json_null(), *changed = json_array();
    if (c->differs) first = json_pack("{s:I, s:s}", "step", (json_int_t)c->first_step, "tensor", c->first_tensor);
    for (int i = 0; i < v->surroundings; i++) {
        const struct surrounding *s = &v->surrounding[i];
        json_array_append_new(changed,
                              json_pack("{s:s, s:s, s:o}", "name", s->name, "then", s->a, "now", text_or_null(s->b)));
    }
    json_object_set_new(all, "found", json_string(names[v->steps]));
    json_object_set_new(all, "compared", json_integer((json_int_t)c->steps));
    json_object_set_new(all, "degenerate", json_boolean(degenerate(c)));
    json_object_set_new(all, "first_difference", first);
    json_object_set_new(all, "exit_code", json_integer(v->code));
    json_object_set_new(all, "surroundings", changed);
    return all;
}

void verify_json(const struct verification *v, int code, FILE *out)
{
    json_t *all = json_object();
    char status[RESULT_STATUS];
    json_object_set_new(all, "file", json_string(v->path));
    json_object_set_new(all, "status", json_string(result_status(v->result, status)));
    json_object_set_new(all, "right", json_boolean(code == 0));
    json_object_set_new(all, "plan", plan_json(v));
    json_object_set_new(all, "bounds", bounds_json(v));
    json_object_set_new(all, "record", record_json(v));
    json_object_set_new(all, "steps", steps_json(v));
    json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    fputc('\n', out);
    json_decref(all);
}
