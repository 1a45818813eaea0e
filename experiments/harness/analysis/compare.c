/* Contract: equal means the same bits at every common step, without any tolerance: losses; gradients, parameters,
 * optimiser state and running state by their digests; the other deterministic columns; evaluations; and batches and
 * tensors that both files hold. */
#include "analysis/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/time_doubts.h"
#include "base/text.h"

/* A step's columns: their names, paths, names in messages and, for digests, the tensors that they belong to. */
static const struct {
    const char *many, *path;
    enum number number;
    size_t width;
    const char *one;    /* in a message */
    int digests;        /* enum digests of each tensor, -1: none */
    const char *prefix; /* before a tensor's name */
    bool backwards;     /* the last parameter's gradient comes first */
    bool optional;      /* zero where there is nothing */
} columns[STEP_COLUMNS] = {
    [COLUMN_LOSS] = {"losses", "/steps/loss_bits", NUMBER_U32, 1, "loss", -1},
    [COLUMN_GRADIENTS] = {"gradients", "/steps/grad_digest", NUMBER_U64, 2, "gradients", DIGESTS_GRADIENT,
                          "gradient of ", true},
    [COLUMN_PARAMETERS] = {"parameters", "/steps/param_digest", NUMBER_U64, 2, "parameters", DIGESTS_PARAMETER, ""},
    [COLUMN_STATE] = {"state", "/steps/state_digest", NUMBER_U64, 2, "state", DIGESTS_STATE, "state of ",
                      .optional = true},
    [COLUMN_RUNNING] = {"running state", "/steps/running_digest", NUMBER_U64, 2, "running state", DIGESTS_RUNNING, "",
                        .optional = true},
    [COLUMN_METRIC] = {"metrics", "/steps/metric", NUMBER_F32, 1, "metric", -1},
    [COLUMN_RATE] = {"learning rates", "/steps/lr", NUMBER_F64, 1, "learning rate", -1},
    [COLUMN_NORM] = {"gradient norms", "/steps/grad_norm", NUMBER_F64, 1, "gradient norm", -1},
    [COLUMN_ZERO] = {"zero flags", "/steps/gradients_zero", NUMBER_U8, 1, "flag of gradients that are all zero", -1},
};

const char *step_column_name(enum step_column column) { return columns[column].many; }

/* The number of floats from a to b, +0 and -0 being one. */
static int64_t ulp_distance(uint32_t a, uint32_t b)
{
    int64_t x = a & 0x80000000u ? -(int64_t)(a & 0x7fffffffu) : (int64_t)a;
    int64_t y = b & 0x80000000u ? -(int64_t)(b & 0x7fffffffu) : (int64_t)b;
    return llabs(x - y);
}

/* The first difference is that of the least step; within a step, the one found first. */
static bool is_first(struct comparison *c, int64_t step)
{
    if (c->differs && c->first_step <= step) return false;
    c->differs = true;
    c->first_step = step;
    c->loss_ulp = 0;
    return true;
}

/* Names the first tensor of a column that differs at a step; all of them where the files kept no digest of each. */
static void name_tensor(struct pair *p, int column, uint32_t step)
{
    char *name = p->c->first_tensor;
    const size_t room = sizeof p->c->first_tensor;
    snprintf(name, room, "%s", columns[column].one);
    if (columns[column].digests < 0) return;
    const enum digests which = (enum digests)columns[column].digests;
    const struct result_tensors *tensors = result_tensors(p->a, which);
    const struct digest *x = result_digests(p->a, which, step), *y = result_digests(p->b, which, step);
    for (size_t i = 0; x && y && i < tensors->count; i++) {
        const size_t tensor = columns[column].backwards ? tensors->count - 1 - i : i;
        if (digest_equal(x[tensor], y[tensor])) continue;
        snprintf(name, room, "%s%s", columns[column].prefix, tensors->name[tensor]);
        return;
    }
}

/* ---- steps ---- */

static bool all_zero(const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i]) return false;
    return true;
}

/* Row i of the first file beside row j of the second. */
static void compare_step(struct pair *p, char *column[STEP_COLUMNS][2], size_t i, size_t j)
{
    struct comparison *c = p->c;
    int first = -1;
    c->steps++;
    for (int k = STEP_COLUMNS - 1; k >= 0; k--) {
        const size_t bytes = columns[k].width * h5_number_bytes(columns[k].number);
        const bool same = memcmp(column[k][0] + i * bytes, column[k][1] + j * bytes, bytes) == 0;
        c->same[k] += same;
        if (!same) first = k;
    }
    if (first < 0 || !is_first(c, p->a->step[i])) return;
    c->loss_ulp = ulp_distance(p->a->loss_bits[i], p->b->loss_bits[j]);
    name_tensor(p, first, p->a->step[i]);
}

static enum status compare_steps(struct pair *p)
{
    struct result *const sides[2] = {p->a, p->b};
    char *column[STEP_COLUMNS][2];
    for (int k = 0; k < STEP_COLUMNS; k++)
        for (int s = 0; s < 2; s++) {
            const size_t steps = sides[s]->steps;
            column[k][s] = result_column(sides[s], columns[k].path, columns[k].number, columns[k].width, steps);
            TRY(h5_status(&sides[s]->h5));
            p->c->present[k] |= !columns[k].optional || !all_zero(column[k][s], steps * sizeof(struct digest));
        }
    for (size_t i = 0, j = 0; i < p->a->steps && j < p->b->steps;) {
        const uint32_t x = p->a->step[i], y = p->b->step[j];
        if (x == y) compare_step(p, column, i, j);
        i += x <= y;
        j += y <= x;
    }
    return ST_OK;
}

/* A run that ended at a number that was not finite differs there, unless the other ended at the same one. */
static void compare_ends(struct pair *p)
{
    const struct result *const sides[2] = {p->a, p->b};
    for (int s = 0; s < 2; s++) {
        const struct result *r = sides[s], *other = sides[1 - s];
        const uint64_t step = r->not_finite_step;
        const bool same =
            *other->not_finite && other->not_finite_step == step && !strcmp(r->not_finite, other->not_finite);
        const bool passed = (other->steps && other->step[other->steps - 1] >= step) ||
                            (*other->not_finite && other->not_finite_step >= step);
        if (!*r->not_finite || same || !passed || !is_first(p->c, (int64_t)step)) continue;
        snprintf(p->c->first_tensor, sizeof p->c->first_tensor, "%.*s",
                 text_shown(r->not_finite, (int)sizeof p->c->first_tensor - 1), r->not_finite);
        p->c->not_finite = p->c->name[s];
    }
}

/* ---- evaluations ---- */

enum { EVALUATION_COLUMNS = 3 };

/* As patterns of bits. */
static const struct {
    const char *name, *path;
    enum number number;
} evaluation_columns[EVALUATION_COLUMNS] = {
    {"step", "/eval/step", NUMBER_U32}, {"loss", "/eval/loss", NUMBER_F32}, {"accuracy", "/eval/accuracy", NUMBER_F32}};

/* Row i of the first file beside row j of the second. */
static void compare_evaluation(struct comparison *c, uint32_t *column[EVALUATION_COLUMNS][2], uint64_t i, uint64_t j)
{
    const uint32_t done = column[0][0][i];
    int first = 0;
    while (first < EVALUATION_COLUMNS && column[first][0][i] == column[first][1][j]) first++;
    c->evaluations++;
    c->same_evaluations += first == EVALUATION_COLUMNS;
    if (first < EVALUATION_COLUMNS && is_first(c, done > 0 ? (int64_t)done - 1 : 0)) /* the last step before it */
        snprintf(c->first_tensor, sizeof c->first_tensor, "%s of the evaluation after it",
                 evaluation_columns[first].name);
}

/* Row by row where both have as many, so that a step's number counts too; else those of common steps. */
static enum status compare_evaluations(struct pair *p)
{
    struct result *const sides[2] = {p->a, p->b};
    uint32_t *column[EVALUATION_COLUMNS][2];
    uint64_t *count = p->evaluations;
    for (int s = 0; s < 2; s++) {
        count[s] = h5_rows(&sides[s]->h5, "/eval/committed");
        for (int k = 0; k < EVALUATION_COLUMNS; k++)
            column[k][s] =
                result_column(sides[s], evaluation_columns[k].path, evaluation_columns[k].number, 1, count[s]);
        TRY(h5_status(&sides[s]->h5));
    }
    const bool whole = count[0] == count[1] && p->a->steps == p->b->steps;
    for (uint64_t i = 0, j = 0; i < count[0] && j < count[1];) {
        const uint32_t x = column[0][0][i], y = column[0][1][j];
        if (whole || x == y) compare_evaluation(p->c, column, i, j);
        i += whole || x <= y;
        j += whole || y <= x;
    }
    return ST_OK;
}

/* ---- tensors ---- */

static enum status compare_tensor(struct pair *p, const char *moment, const char *name, int64_t step)
{
    const char *path = region_text(p->a->region, "/state/%s/%s", moment, name);
    uint64_t same;
    if (!h5_exists(&p->a->h5, path) && !h5_exists(&p->b->h5, path)) return ST_OK; /* a gradient, not computed */
    const uint64_t rows = h5_rows(&p->a->h5, path);
    TRY(h5_status(&p->a->h5));
    if (rows == 0) return ST_OK;
    TRY(result_same_rows(p->a, p->b, path, NUMBER_F32, rows, &same));
    p->c->tensors++;
    p->c->same_tensors += same == rows;
    if (same < rows && is_first(p->c, step)) snprintf(p->c->first_tensor, sizeof p->c->first_tensor, "%s", path);
    return ST_OK;
}

/* The batches of common steps, whose rows are the steps'. */
static enum status compare_batches(struct pair *p)
{
    static const struct {
        const char *path;
        enum number number;
    } batches[] = {{"/state/x", NUMBER_F32}, {"/state/labels", NUMBER_I32}, {"/state/targets", NUMBER_F32}};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        const char *path = batches[i].path;
        uint64_t same = 0, rows = p->a->steps < p->b->steps ? p->a->steps : p->b->steps;
        if (!h5_exists(&p->a->h5, path) || !h5_exists(&p->b->h5, path)) continue;
        if (h5_width(&p->a->h5, path) == h5_width(&p->b->h5, path)) /* else the batches are of other sizes */
            TRY(result_same_rows(p->a, p->b, path, batches[i].number, rows, &same));
        p->c->tensors++;
        p->c->same_tensors += same == rows;
        if (same < rows && is_first(p->c, (int64_t)same))
            snprintf(p->c->first_tensor, sizeof p->c->first_tensor, "%s", path);
    }
    return ST_OK;
}

/* The tensors of both files: the initial values and, where both ended at the same step, the final ones and the last
 * gradients. */
static enum status compare_tensors(struct pair *p)
{
    const size_t steps = p->a->steps;
    const bool ended = !strcmp(p->a->status, "completed") && !strcmp(p->b->status, "completed") && steps == p->b->steps;
    const int64_t last = steps ? p->a->step[steps - 1] : 0;
    const struct {
        const char *name;
        const struct result_tensors *tensors;
    } moments[] = {{"initial", &p->a->parameters},
                   {"initial", &p->a->running},
                   {"gradient", &p->a->parameters},
                   {"final", &p->a->parameters},
                   {"final", &p->a->running}};
    for (int m = 0; m < (ended ? 5 : 2); m++) {
        char group[32];
        snprintf(group, sizeof group, "/state/%s", moments[m].name);
        const bool both = h5_exists(&p->a->h5, group) && h5_exists(&p->b->h5, group);
        for (size_t i = 0; both && i < moments[m].tensors->count; i++)
            TRY(compare_tensor(p, moments[m].name, moments[m].tensors->name[i], m < 2 ? 0 : last));
    }
    return ST_OK;
}

/* ---- what can be compared ---- */

/* Two runs can be compared where they train the same parameters and keep the same running state. */
static enum status check_tensors(const struct result *a, const struct result *b, const struct result_tensors *x,
                                 const struct result_tensors *y, const char *what)
{
    if (x->count != y->count)
        return fail(ST_SPEC, "%s has %zu %ss, %s has %zu: not of the same experiment", a->h5.path, x->count, what,
                    b->h5.path, y->count);
    for (size_t i = 0; i < x->count; i++)
        if (strcmp(x->name[i], y->name[i]) != 0 || x->elements[i] != y->elements[i])
            return fail(ST_SPEC, "%s %zu is %s (%llu elements) in %s and %s (%llu) in %s: not of the same experiment",
                        what, i, x->name[i], (unsigned long long)x->elements[i], a->h5.path, y->name[i],
                        (unsigned long long)y->elements[i], b->h5.path);
    return ST_OK;
}

/* A file compared with itself would always be equal. */
static enum status check_apart(const char *a, const char *b)
{
    struct stat x, y;
    if (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino)
        return fail(ST_SPEC, "%s and %s are one and the same file: nothing to compare", a, b);
    return ST_OK;
}

/* 0: the run has not ended, has no step after the first, or its best case (timing_best_case()) is not known. */
static json_t *side_json(const struct result *r)
{
    return OBJECT(KEY("path", json_of_plain(r->h5.path)), KEY("policy", r->policy), KEY("steps", r->steps),
                  KEY("peak_bytes", r->peak_bytes), KEY("live_peak_bytes", r->live_peak),
                  KEY("high_water_bytes", r->high_water), KEY("step_median_ns", r->timing.median_ns),
                  KEY("step_least_ns", r->timing.least_ns), KEY("step_most_ns", r->timing.most_ns),
                  KEY("step_best_case_ns", (double)r->best_case_ns));
}

static void name_sides(struct pair *p)
{
    static const char *const names[][2] = {{"baseline", "variant"}, {"variant", "baseline"}, {"A", "B"}};
    int i = 0;
    while (i < 2 && (strcmp(p->a->variant, names[i][0]) != 0 || strcmp(p->b->variant, names[i][1]) != 0)) i++;
    memcpy(p->c->name, names[i], sizeof names[i]);
}

static double ratio(double b, double a) { return a > 0 && b > 0 ? b / a : (double)NAN; }

/* "losses_equal": at how many steps; null: the runs have no such column. */
static void add_counts(const struct comparison *c)
{
    json_t *all = c->json;
    for (int k = 0; k < STEP_COLUMNS; k++) {
        char key[48];
        snprintf(key, sizeof key, "%s_equal", columns[k].many);
        for (char *blank = key; (blank = strchr(blank, ' '));) *blank = '_';
        PUT(all, key, c->present[k] ? json_integer(c->same[k]) : json_null());
    }
    PUT_ALL(all, KEY("evaluations", c->evaluations), KEY("evaluations_equal", c->same_evaluations),
            KEY("tensors", c->tensors), KEY("tensors_equal", c->same_tensors));
}

static enum status compare_results(struct pair *p)
{
    struct comparison *c = p->c;
    TRY(check_tensors(p->a, p->b, &p->a->parameters, &p->b->parameters, "parameter"));
    TRY(check_tensors(p->a, p->b, &p->a->running, &p->b->running, "tensor of running state"));
    name_sides(p);
    TRY(compare_steps(p));
    compare_ends(p);
    if (c->steps == 0 && !c->differs)
        return fail(ST_SPEC, "%s and %s have no step in common", p->a->h5.path, p->b->h5.path);
    TRY(compare_evaluations(p));
    TRY(compare_batches(p));
    TRY(compare_tensors(p));
    TRY(comparison_judge(p));
    c->peak_ratio = ratio((double)p->b->peak_bytes, (double)p->a->peak_bytes);
    c->live_ratio = ratio((double)p->b->live_peak, (double)p->a->live_peak);
    c->time_ratio = ratio(p->b->timing.median_ns, p->a->timing.median_ns);
    c->best_case_ratio = ratio((double)p->b->best_case_ns, (double)p->a->best_case_ns);
    add_counts(c);
    PUT_ALL(c->json, KEY("a", side_json(p->a)), KEY("b", side_json(p->b)));
    c->disturbed = time_was_disturbed(p->a) || time_was_disturbed(p->b);
    c->side_by_side = *p->a->invocation && strcmp(p->a->invocation, p->b->invocation) == 0;
    TRY(h5_status(&p->a->h5));
    return h5_status(&p->b->h5);
}

enum status compare_files(const char *a, const char *b, struct comparison *comparison)
{
    result_auto *first = NULL, *second = NULL;
    *comparison = (struct comparison){.first_step = -1, .json = json_object()};
    TRY(check_apart(a, b));
    TRY(result_open(a, &first));
    TRY(result_open(b, &second));
    return compare_results(&(struct pair){.a = first, .b = second, .c = comparison});
}
