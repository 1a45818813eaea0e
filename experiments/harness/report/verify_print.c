/* The findings of verify, as text and as JSON. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/json_tree.h"
#include "analysis/verify.h"
#include "base/units.h"
#include "console/terminal.h"

static const char *buffer_name(const struct verification *v, char text[128])
{
    const struct buffer *b = &v->data.buffer[v->moved];
    return buffer_text(b, v->data.node[b->node].name, text);
}

static void verify_print_plan(const struct verification *v, FILE *out)
{
    const struct plan_data *a = &v->data;
    const struct result *r = v->result;
    char name[128];
    if (strcmp(r->status, "completed") != 0 && strcmp(r->variant, "plan") != 0) fprintf(out, "run       %s\n", r->now);
    if (v->wrong)
        fprintf(out, "plan      WRONG: %s\n", v->wrong);
    else
        fprintf(out, "plan      right: %d ops, %d buffers, live peak %s, arena %s, hash %s\n", a->ops, a->buffers,
                BYTES_TEXT(a->count[COUNT_LIVE_PEAK]), BYTES_TEXT(a->count[COUNT_ARENA]), a->hash);
    if (v->moved >= 0)
        fprintf(out, "          the hash is that of buffer %d (%s) at %zu, where placement puts it; it is at %zu\n",
                v->moved, buffer_name(v, name), v->placed, a->buffer[v->moved].offset);
    if (v->wrong_bound)
        fprintf(out, "bounds    WRONG: %s\n", v->wrong_bound);
    else if (v->bounds_unjudged)
        fprintf(out, "bounds    not judged: %s\n", v->bounds_unjudged);
    else if (!v->wrong)
        fprintf(out, "bounds    right: floors of memory and time, and the gap to them\n");
    fflush(out);
}

static void print_environment(const struct verification *v, FILE *out)
{
    const bool again = v->steps == STEPS_DIFFER || v->steps == STEPS_CLOSE;
    fprintf(out, again ? "not as it was:\n" : "it was written with:\n");
    for (int i = 0; i < v->differences; i++) {
        const struct environment_difference *s = &v->difference[i];
        fprintf(out, "  %-12s %s%s%s\n", s->name, s->a, s->b ? ", now " : "", s->b ? s->b : "");
    }
    if (again && !v->differences)
        fprintf(out, "  nothing that is known: program, libraries, machine and data are the same\n");
    else if (again && v->defined)
        fprintf(out, "  the kernels have one definition: on every machine their bits are expected to be the same\n");
}

void verify_print_not_checked(FILE *out)
{
    fprintf(out, "not checked:\n");
    for (const char *const *what = verify_not_checked; *what; what++) fprintf(out, "  %s\n", *what);
}

static void print_record(const struct verification *v, FILE *out)
{
    const struct spec *spec = v->spec;
    if (v->wrong_record)
        fprintf(out, "record    WRONG: %s\n", v->wrong_record);
    else
        fprintf(out, "record    right: run id, names, sums, summary and digests agree\n");
    if (spec->fault_kind != FAULT_NONE)
        fprintf(out, "fault     a run with a planted fault, at step %lld in node %s: no proof\n",
                (long long)spec->fault_step, spec->fault_node);
    if (!v->request->elsewhere) verify_print_not_checked(out);
}

/* A loss is 0 or not finite, or every gradient of a step is zero. */
static bool degenerate(const struct comparison *c)
{
    return comparison_reason(c, "loss") || comparison_reason(c, "all_gradients_zero");
}

static void print_steps(const struct verification *v, FILE *out)
{
    const struct comparison *c = &v->comparison;
    if (v->steps == STEPS_NOT_ASKED) return;
    fprintf(out, "steps     ");
    if (v->steps == STEPS_NONE) fprintf(out, "none in the file\n");
    if (v->steps == STEPS_SAME)
        fprintf(out,
                "same bits: losses, gradients, parameters, optimizer and running state of %lld steps, run again%s%s\n",
                (long long)c->steps, v->defined && v->differences ? " elsewhere, by the same definition" : "",
                degenerate(c) ? "; degenerate: proves nothing" : "");
    if (v->steps == STEPS_NONE || v->steps == STEPS_SAME) return;
    if (v->steps == STEPS_CLOSE)
        fprintf(out, "within the allowed variation of other kernels: the first loss differs by %.1e, at most %.0e\n",
                v->first_loss, VERIFY_FIRST_LOSS);
    else if (v->steps == STEPS_NOT_RUN)
        fprintf(out, "not run again: exit code %d\n", v->code);
    else if (c->differs)
        fprintf(out, "DIFFER: first at step %lld, in %s\n", (long long)c->first_step, c->first_tensor);
    else
        fprintf(out, "DIFFER: %zu in the file; its spec has %.0f\n", v->result->steps,
                json_number_at(json_object_get(c->json, "b"), "steps"));
    print_environment(v, out);
}

static void verify_print_run(const struct verification *v, FILE *out)
{
    print_steps(v, out);
    if (!v->wrong) print_record(v, out);
}

/* ---- JSON; a text that is no UTF-8, as of a path, is left out ---- */

/* Every number that the plan claims, right or wrong. */
static json_t *claim_numbers(const struct plan_data *a)
{
    json_t *all = json_object();
    for (int i = 0; i < COUNTS; i++) PUT(all, plan_data_count_names[i], a->count[i]);
    for (int i = 0; i < REALS; i++) PUT(all, plan_data_real_names[i], a->real[i]);
    PUT(all, "hash", a->hash);
    return all;
}

static json_t *record_numbers(const struct verification *v)
{
    json_t *not_checked = json_array();
    for (const char *const *what = verify_not_checked; *what; what++) json_note(not_checked, "%s", *what);
    return json_pack("{s:b, s:o*, s:b, s:o}", "judged", !v->wrong, "wrong", JSON_VALUE(v->wrong_record), "fault",
                     v->spec && v->spec->fault_kind != FAULT_NONE, "not_checked", not_checked);
}

static json_t *json_of_steps(const struct verification *v)
{
    static const char *const names[] = {"not asked", "none", "not run", "same", "differ", "close"};
    const struct comparison *c = &v->comparison;
    json_t *first = json_null(), *changed = json_array();
    if (c->differs) first = json_pack("{s:I, s:s}", "step", (json_int_t)c->first_step, "tensor", c->first_tensor);
    for (int i = 0; i < v->differences; i++) {
        const struct environment_difference *s = &v->difference[i];
        ADD(changed, json_pack("{s:s, s:s, s:s?}", "name", s->name, "then", s->a, "now", s->b));
    }
    return json_pack("{s:s, s:I, s:b, s:o, s:i, s:o}", "found", names[v->steps], "compared", (json_int_t)c->steps,
                     "degenerate", degenerate(c), "first_difference", first, "exit_code", v->code, "environment",
                     changed);
}

static json_t *verify_json(const struct verification *v, int code)
{
    char name[128];
    json_t *moved = json_null();
    if (v->moved >= 0)
        moved = json_pack("{s:i, s:s, s:o, s:o}", "buffer", v->moved, "name", buffer_name(v, name), "offset",
                          JSON_VALUE(v->data.buffer[v->moved].offset), "expected", JSON_VALUE(v->placed));
    json_t *plan =
        json_pack("{s:b, s:o*, s:o, s:i, s:i, s:o}", "right", !v->wrong, "wrong", JSON_VALUE(v->wrong), "moved", moved,
                  "ops", v->data.ops, "buffers", v->data.buffers, "claims", claim_numbers(&v->data));
    json_t *bounds = json_pack("{s:b, s:o*, s:o*}", "judged", !v->wrong && !v->bounds_unjudged, "wrong",
                               JSON_VALUE(v->wrong_bound), "why_not", JSON_VALUE(v->bounds_unjudged));
    return json_pack("{s:o*, s:s, s:b, s:o, s:o, s:o, s:o}", "file", JSON_VALUE(v->path), "status", v->result->now,
                     "right", code == 0, "plan", plan, "bounds", bounds, "record", record_numbers(v), "steps",
                     json_of_steps(v));
}

/* ---- all of it ---- */

int verify_file(const char *path, const struct verify_request *request, json_t **json, FILE *out)
{
    struct verification v = {.request = request, .moved = -1, .again.descriptor = -1};
    enum status status = result_open(path, &v.result);
    char absolute[PATH_MAX];
    v.path = realpath(path, absolute) ? absolute : path;
    if (status == ST_OK) status = verify_plan(&v);
    if (status == ST_OK && !json) verify_print_plan(&v, out);
    if (status == ST_OK) status = verify_rest(&v); /* it takes long */
    if (status == ST_OK && !json) verify_print_run(&v, out);
    int code = (int)report_error(status);
    if (status == ST_OK) code = verify_code(&v);
    /* a bundle's own file is neither a wrong argument nor damaged on its way */
    if (request->elsewhere && (!v.result || status == ST_SPEC)) code = ST_DIFFERS;
    if (json) *json = status == ST_OK ? verify_json(&v, code) : NULL;
    if (v.again.descriptor >= 0) close(v.again.descriptor);
    json_decref(v.comparison.json);
    spec_destroy(v.spec);
    result_close(v.result);
    return code;
}
