/* Contract: equal means that losses, gradients, parameters and optimiser state have the same bits at every common step,
 * by the digests that the runs left; nothing is compared within a tolerance. */
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "result.h"
#include "text.h"
#include "utf8.h"

/* The order in which a step's kinds of tensors are made, and so in which a difference is looked for. */
enum kind { KIND_GRADIENT, KIND_PARAMETER, KIND_STATE, KINDS };

static const struct {
    const char *digests, *all, *one; /* name under /digests, of all tensors, of one */
    bool backwards;                  /* the last parameter's gradient comes first */
} kinds[KINDS] = {
    {"gradient", "gradients", "gradient of ", true},
    {"parameter", "parameters", "", false},
    {"state", "state", "state of ", false},
};

static struct digest digest_of(const struct result *r, enum kind kind, size_t row)
{
    const struct digest *const columns[KINDS] = {r->gradients, r->parameters_digest, r->state};
    return columns[kind][row];
}

/* Floats in between, +0 and -0 being neighbours' one. */
static int64_t ulp_distance(uint32_t a, uint32_t b)
{
    int64_t x = a & 0x80000000u ? -(int64_t)(a & 0x7fffffffu) : (int64_t)a;
    int64_t y = b & 0x80000000u ? -(int64_t)(b & 0x7fffffffu) : (int64_t)b;
    return llabs(x - y);
}

/* Names the first tensor of a kind that differs at a step; all of them where the files kept no digest of each. */
static void name_tensor(struct result *a, struct result *b, enum kind kind, uint32_t step, char name[128])
{
    const struct digest *x = result_digests(a, kinds[kind].digests, step);
    const struct digest *y = result_digests(b, kinds[kind].digests, step);
    snprintf(name, 128, "%s", kinds[kind].all);
    for (size_t i = 0; x && y && i < a->parameters; i++) {
        const size_t tensor = kinds[kind].backwards ? a->parameters - 1 - i : i;
        if (digest_equal(x[tensor], y[tensor])) continue;
        snprintf(name, 128, "%s%s", kinds[kind].one, a->parameter[tensor]);
        return;
    }
}

static void compare_step(struct result *a, struct result *b, size_t i, size_t j, struct comparison *c)
{
    const bool same_loss = a->loss_bits[i] == b->loss_bits[j];
    int64_t *const counts[KINDS] = {&c->gradients_equal, &c->parameters_equal, &c->state_equal};
    int first = same_loss ? KINDS : -1;
    c->steps++;
    c->losses_equal += same_loss;
    for (int kind = KINDS - 1; kind >= 0; kind--) {
        const bool same = digest_equal(digest_of(a, (enum kind)kind, i), digest_of(b, (enum kind)kind, j));
        *counts[kind] += same;
        if (!same && same_loss) first = kind;
    }
    c->degenerate |= a->loss[i] == 0 || b->loss[j] == 0 || a->gradients_zero[i] || b->gradients_zero[j];
    if (first == KINDS || c->differs) return;
    c->differs = true;
    c->first_step = a->step[i];
    c->loss_ulp = ulp_distance(a->loss_bits[i], b->loss_bits[j]);
    if (first < 0)
        snprintf(c->first_tensor, sizeof c->first_tensor, "loss");
    else
        name_tensor(a, b, (enum kind)first, a->step[i], c->first_tensor);
}

/* Two runs can be compared where they train the same parameters. */
static enum status check_parameters(const struct result *a, const struct result *b)
{
    if (a->parameters != b->parameters)
        return fail(ST_SPEC, "%s has %zu parameters, %s has %zu: not of the same experiment", a->h5.path, a->parameters,
                    b->h5.path, b->parameters);
    for (size_t i = 0; i < a->parameters; i++)
        if (strcmp(a->parameter[i], b->parameter[i]) != 0 || a->elements[i] != b->elements[i])
            return fail(ST_SPEC,
                        "parameter %zu is %s (%llu elements) in %s and %s (%llu) in %s: not of the same "
                        "experiment",
                        i, a->parameter[i], (unsigned long long)a->elements[i], a->h5.path, b->parameter[i],
                        (unsigned long long)b->elements[i], b->h5.path);
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

static struct compared describe(const struct result *r)
{
    struct compared c = {.steps = (int64_t)r->steps,
                         .peak = r->peak_bytes,
                         .live_peak = r->live_peak,
                         .high_water = r->high_water,
                         .median_ns = r->timing.median_ns,
                         .least_ns = r->timing.least_ns,
                         .most_ns = r->timing.most_ns,
                         .undisturbed_ns = (double)r->undisturbed_ns};
    snprintf(c.path, sizeof c.path, "%s", r->h5.path);
    utf8_clean(c.path, "");
    snprintf(c.policy, sizeof c.policy, "%.*s", text_shown(r->policy, (int)sizeof c.policy - 1), r->policy);
    return c;
}

static double ratio(double b, double a) { return a > 0 && b > 0 ? b / a : (double)NAN; }

static enum status compare_results(struct result *a, struct result *b, struct comparison *c)
{
    TRY(check_parameters(a, b));
    for (size_t i = 0, j = 0; i < a->steps && j < b->steps;) {
        if (a->step[i] == b->step[j])
            compare_step(a, b, i++, j++, c);
        else if (a->step[i] < b->step[j])
            i++;
        else
            j++;
    }
    if (c->steps == 0) return fail(ST_SPEC, "%s and %s have no step in common", a->h5.path, b->h5.path);
    TRY(h5_status(&a->h5));
    TRY(h5_status(&b->h5));
    c->equal = !c->differs;
    c->a = describe(a);
    c->b = describe(b);
    c->peak_ratio = ratio((double)c->b.peak, (double)c->a.peak);
    c->live_ratio = ratio((double)c->b.live_peak, (double)c->a.live_peak);
    c->time_ratio = ratio(c->b.median_ns, c->a.median_ns);
    c->undisturbed_ratio = ratio(c->b.undisturbed_ns, c->a.undisturbed_ns);
    c->side_by_side = *a->invocation && strcmp(a->invocation, b->invocation) == 0;
    return ST_OK;
}

enum status compare_files(const char *a, const char *b, struct comparison *comparison)
{
    struct result *x = NULL, *y = NULL;
    *comparison = (struct comparison){.first_step = -1};
    TRY(check_apart(a, b));
    enum status status = result_open(a, &x);
    if (status == ST_OK) status = result_open(b, &y);
    if (status == ST_OK) status = compare_results(x, y, comparison);
    result_close(x);
    result_close(y);
    return status;
}
