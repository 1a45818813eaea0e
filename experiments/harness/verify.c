#include "verify.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "compare.h"
#include "record_plan.h"
#include "result.h"
#include "simulate.h"
#include "spec_fields.h"
#include "told.h"
#include "units.h"

struct verification {
    struct result *result;
    const char *path; /* absolute */
    FILE *out;
};

/* ---- the plan ---- */

static enum status judge_plan(const struct verification *v)
{
    struct result *r = v->result;
    struct account account;
    char live[UNIT_TEXT], arena[UNIT_TEXT];
    if (!h5_exists(&r->h5, "/plan/ops")) return fail(ST_SPEC, "%s: /plan/ops is missing: it holds no plan", r->h5.path);
    TRY(record_plan_read(&r->h5, r->region, &account));
    enum status status = simulate(&account);
    if (status == ST_DIFFERS) fprintf(v->out, "plan      WRONG: %s\n", status_message());
    if (status != ST_OK) return status;
    fprintf(v->out, "plan      right: %d ops, %d buffers, live peak %s, arena %s, hash %s\n", account.ops,
            account.buffers, bytes_text((double)account.count[COUNT_LIVE_PEAK], live),
            bytes_text((double)account.count[COUNT_ARENA], arena), account.hash);
    return ST_OK;
}

/* ---- what a run depends on besides its spec ---- */

static const struct {
    const char *group, *name;
    bool number;
} surroundings[] = {
    {"/provenance/git", "commit", false},     {"/provenance/git", "dirty_sha1", false},
    {"/provenance/build", "compiler", false}, {"/provenance/build", "flags", false},
    {"/provenance/build", "variant", false},  {"/provenance/libs", "kernels", false},
    {"/provenance/libs", "libc", false},      {"/provenance/host", "isa", false},
    {"/provenance/host", "threads", true},    {"/provenance/host", "cpu", false},
    {"/provenance/data", "name", false},      {"/provenance/data", "digest_xxh3", false},
};
enum { SURROUNDINGS = sizeof surroundings / sizeof *surroundings };

static const char *surrounding(struct result *r, int i)
{
    const char *group = surroundings[i].group, *name = surroundings[i].name;
    if (!surroundings[i].number) return h5_read_attribute_text(&r->h5, group, name, "unknown", r->region);
    const char *text =
        region_text(r->region, "%llu", (unsigned long long)h5_read_attribute_u64(&r->h5, group, name, 0));
    return text ? text : "";
}

/* What is not as it was; where there is nothing to compare with (again NULL), what it was. */
static void print_surroundings(const struct verification *v, struct result *again)
{
    int printed = 0;
    fprintf(v->out, again ? "not as it was:\n" : "it was written with:\n");
    for (int i = 0; i < SURROUNDINGS; i++) {
        const char *then = surrounding(v->result, i), *now = again ? surrounding(again, i) : "";
        if (again && !strcmp(then, now)) continue;
        fprintf(v->out, "  %-12s %s%s%s\n", surroundings[i].name, then, again ? ", now " : "", now);
        printed++;
    }
    if (again && !printed)
        fprintf(v->out, "  nothing that is known: program, libraries, machine and data are the same\n");
}

/* ---- the steps ---- */

static int take_away(const char *path, const struct stat *file, int flag, struct FTW *place)
{
    (void)file, (void)flag, (void)place;
    return remove(path);
}

/* The spec as it was resolved, in a folder that is made. */
static enum status write_spec(const struct verification *v, char folder[PATH_MAX], const char **spec)
{
    struct result *r = v->result;
    const char *temporary = getenv("TMPDIR"), *text = h5_read_text(&r->h5, "/spec/resolved", r->region);
    TRY(h5_status(&r->h5));
    snprintf(folder, PATH_MAX, "%s/rematch-verify-XXXXXX", temporary && *temporary ? temporary : P_tmpdir);
    if (!mkdtemp(folder)) {
        *folder = 0;
        return fail(ST_FAILED, "%s: cannot make a temporary folder: %s", temporary ? temporary : P_tmpdir,
                    strerror(errno));
    }
    if (!(*spec = region_text(r->region, "%s/resolved.yaml", folder))) return ST_FAILED;
    FILE *file = fopen(*spec, "we");
    bool good = file && fputs(text, file) >= 0;
    good = file && fclose(file) == 0 && good;
    return good ? ST_OK : fail(ST_FAILED, "%s: cannot be written: %s", *spec, strerror(errno));
}

/* key=value with the value as YAML. */
static const char *set_text(const struct verification *v, const char *key, struct spec *spec, const char **member,
                            const char *value)
{
    *member = value;
    const char *text = field_print(field_find(spec_fields, key), spec, v->result->region);
    return text ? region_text(v->result->region, "%s=%s", key, text) : NULL;
}

/* With the plan of the file itself, which needs no costs. */
static enum status run_again(const struct verification *v, const char *folder, const char *path,
                             struct run_report *report, int *code)
{
    struct spec spec = {.plan = NULL};
    const char *results = region_text(v->result->region, "%s/results", folder);
    const char *override[] = {set_text(v, "plan", &spec, &spec.plan, v->path),
                              set_text(v, "results", &spec, &spec.results, results), "costs=flops"};
    const struct child child = {path, 3, override, false, true};
    if (!results || !override[0] || !override[1]) return ST_FAILED;
    return child_run(&child, report, code);
}

static int compare_again(const struct verification *v, const char *again)
{
    struct comparison c;
    struct result *other = NULL;
    if (told(compare_files(v->path, again, &c)) != ST_OK) return ST_FAILED;
    bool fewer = v->result->whole && c.a.steps != c.b.steps;
    if (c.equal && !fewer) {
        fprintf(v->out, "steps     same bits: losses, gradients, parameters and state of %lld steps, run again%s\n",
                (long long)c.steps, c.degenerate ? "; degenerate: proves nothing" : "");
        return ST_OK;
    }
    if (c.equal)
        fprintf(v->out, "steps     DIFFER: %lld in the file; its spec has %lld\n", (long long)c.a.steps,
                (long long)c.b.steps);
    else
        fprintf(v->out, "steps     DIFFER: first at step %lld, in %s\n", (long long)c.first_step, c.first_tensor);
    if (told(result_open(again, &other)) == ST_OK) print_surroundings(v, other);
    result_close(other);
    return ST_DIFFERS;
}

static int judge_steps(const struct verification *v)
{
    char folder[PATH_MAX] = "";
    const char *spec = NULL;
    struct run_report report = {0};
    int code = 0;
    enum status status = write_spec(v, folder, &spec);
    if (status == ST_OK) status = run_again(v, folder, spec, &report, &code);
    if (told(status) != ST_OK) {
        code = (int)status;
    } else if (code != 0) {
        fprintf(v->out, "steps     not run again: exit code %d\n", code);
        print_surroundings(v, NULL);
    } else {
        code = compare_again(v, report.path);
    }
    if (*folder) nftw(folder, take_away, 16, FTW_DEPTH | FTW_PHYS);
    return code;
}

int verify_file(const char *path, bool plan_only, FILE *out)
{
    struct verification v = {.out = out};
    enum status status = result_open(path, &v.result);
    char absolute[PATH_MAX];
    v.path = realpath(path, absolute) ? absolute : path;
    if (status == ST_OK) status = judge_plan(&v);
    int code = status == ST_DIFFERS ? ST_DIFFERS : (int)told(status);
    if (status == ST_OK && !plan_only && v.result->steps) code = judge_steps(&v);
    if (status == ST_OK && !plan_only && !v.result->steps) fprintf(out, "steps     none in the file\n");
    result_close(v.result);
    return code;
}
