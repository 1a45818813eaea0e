/* What the equality of two files proves. Contract: every reason against a proof is named, and none is inferred from
 * what a file lacks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare.h"
#include "analysis/proof_rule.h"
#include "analysis/time_doubts.h"
#include "base/text.h"
#include "console/utf8.h"
#include "result/provenance.h"
#include "spec/spec_settings.h"
#include "yaml/yaml_read.h"

static struct result *side_of(const struct pair *p, int side) { return side ? p->b : p->a; }

/* The text at key or section.key of the resolved spec, "" where there is none. */
static const char *setting(const struct pair *p, int side, const char *section, const char *key)
{
    const struct yaml_tree *map = section ? yaml_tree_get(p->spec[side], section) : p->spec[side];
    const struct yaml_tree *value = yaml_tree_get(map, key);
    return value && value->kind == YAML_TEXT ? value->text : "";
}

enum { REMARK_TEXT = 320 };

/* Appends to a remark as far as it has room. */
__attribute__((format(printf, 2, 3))) static void add(char text[REMARK_TEXT], const char *format, ...)
{
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, REMARK_TEXT - used, format, arguments);
    va_end(arguments);
}

/* ---- the files ---- */

/* Two files of one run are copies. */
static void find_copy(struct pair *p, char *text)
{
    const struct result *a = p->a, *b = p->b;
    if (!strcmp(a->run_id, b->run_id) && !strcmp(a->created, b->created) && !strcmp(a->variant, b->variant) &&
        !strcmp(a->invocation, b->invocation))
        add(text, "one is a copy of the other: run %.16s of %.20s", a->run_id, a->created);
}

static void find_status(struct pair *p, char *text)
{
    for (int s = 0; s < 2; s++) {
        const struct result *r = side_of(p, s);
        if (!strcmp(r->status, "completed")) continue;
        add(text, "%s%s is not completed: %.*s", *text ? "; " : "", p->c->name[s], text_shown(r->now, 120), r->now);
    }
}

static void find_steps(struct pair *p, char *text)
{
    const size_t a = p->a->steps, b = p->b->steps, both = (size_t)p->c->steps;
    if (a != b || both != a)
        add(text, "%s has %zu step%s, %s %zu; %zu in common", p->c->name[0], a, text_plural((int64_t)a), p->c->name[1],
            b, both);
}

static void find_gaps(struct pair *p, char *text)
{
    for (int s = 0; s < 2; s++) {
        const struct result *r = side_of(p, s);
        if (r->steps && r->step[r->steps - 1] + 1 != r->steps)
            add(text, "%sthe %zu steps of %s end with number %u", *text ? "; " : "", r->steps, p->c->name[s],
                r->step[r->steps - 1]);
    }
}

static void find_short(struct pair *p, char *text)
{
    for (int s = 0; s < 2; s++) {
        const struct result *r = side_of(p, s);
        const uint64_t asked = result_steps_asked(side_of(p, s), p->spec[s]);
        if (!strcmp(r->status, "completed") && r->steps < asked)
            add(text, "%s%s has %zu of the %llu steps that its spec asks for", *text ? "; " : "", p->c->name[s],
                r->steps, (unsigned long long)asked);
    }
}

/* ---- the numbers ---- */

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Whether both files have the step. */
static bool compared(const struct pair *p, uint32_t step)
{
    return bsearch(&step, p->a->step, p->a->steps, sizeof step, by_number) &&
           bsearch(&step, p->b->step, p->b->steps, sizeof step, by_number);
}

static void find_loss(struct pair *p, char *text)
{
    for (size_t i = 0; i < p->a->steps && !*text; i++) {
        const float loss = p->a->loss[i];
        if ((loss == 0 || !isfinite(loss)) && compared(p, p->a->step[i]))
            add(text, "the loss of step %u is %s", p->a->step[i],
                loss == 0     ? "0"
                : isnan(loss) ? "not a number"
                              : "infinite");
    }
}

static void find_zero_step(struct pair *p, char *text)
{
    for (size_t i = 0; i < p->a->steps && !*text; i++)
        if (p->a->gradients_zero[i] && compared(p, p->a->step[i]))
            add(text, "every gradient of step %u is zero", p->a->step[i]);
}

/* Of as many zeros as each parameter has; NULL: a damaged file claims more than memory holds. */
static struct digest *zero_digests(const struct pair *p)
{
    const struct result *r = p->a;
    struct digest *digest;
    NEW(p->a->region, digest, r->parameters.count);
    for (size_t i = 0; i < r->parameters.count; i++) {
        float *zeros = r->parameters.elements[i] < SIZE_MAX / sizeof *zeros
                           ? calloc(r->parameters.elements[i], sizeof *zeros)
                           : NULL;
        if (!zeros) return NULL;
        digest[i] = digest_tensor(zeros, (size_t)r->parameters.elements[i] * sizeof *zeros, 1);
        free(zeros);
    }
    return digest;
}

/* Marks the parameters with a gradient at some compared step. false: no digests of one step at least. */
static bool find_alive(const struct pair *p, struct result *r, const struct digest *zero, bool *alive)
{
    uint64_t seen = 0;
    struct digest *row;
    NEW(p->a->region, row, r->parameters.count);
    for (size_t i = 0; i < r->digest_rows && !r->h5.broken; i++) {
        if (!compared(p, r->digest_step[i])) continue;
        h5_read_rows(&r->h5, "/digests/gradient", NUMBER_U64, 2 * r->parameters.count, i, 1, row);
        for (size_t k = 0; k < r->parameters.count; k++) alive[k] |= !digest_equal(row[k], zero[k]);
        seen++;
    }
    return !r->h5.broken && seen >= (uint64_t)p->c->steps;
}

/* The file that kept a digest of every gradient; NULL: neither did. */
static struct result *with_digests(const struct pair *p)
{
    for (int s = 0; s < 2; s++)
        if (h5_exists(&side_of(p, s)->h5, "/digests/gradient")) return side_of(p, s);
    return NULL;
}

static void find_zero_tensors(struct pair *p, char *text)
{
    enum { NAMED = 4 };
    struct result *r = with_digests(p);
    bool *alive;
    size_t zeros = 0;
    const struct digest *zero = r ? zero_digests(p) : NULL;
    if (!zero) return;
    NEW(p->a->region, alive, r->parameters.count);
    if (!find_alive(p, r, zero, alive)) return;
    for (size_t i = 0; i < r->parameters.count; i++) zeros += !alive[i];
    if (!zeros) return;
    add(text, "zero at every step, of %zu tensors the gradient%s of ", r->parameters.count,
        text_plural((int64_t)zeros));
    for (size_t i = 0, named = 0; i < r->parameters.count && named < NAMED; i++)
        if (!alive[i]) add(text, "%s%.40s", named++ ? ", " : "", r->parameters.name[i]);
    if (zeros > NAMED) add(text, " and %zu more", zeros - NAMED);
}

static void find_no_digests(struct pair *p, char *text)
{
    if (!with_digests(p))
        add(text, "no digests of single tensors were kept: whether one's gradient is always zero is not known");
}

/* ---- policies and data ---- */

static bool recomputes(struct result *r) { return h5_read_attribute_u64(&r->h5, "/plan", "recomputations", 0) > 0; }

static const char *data_of(struct pair *p, int side, const char *name)
{
    return h5_read_attribute_text(&side_of(p, side)->h5, "/provenance/data", name, "", p->a->region);
}

static void find_other_data(struct pair *p, char *text)
{
    if (!p->c->differs && strcmp(data_of(p, 0, "digest_xxh3"), data_of(p, 1, "digest_xxh3")) != 0)
        add(text, "the bits are equal although the data are not");
}

static void find_ones(struct pair *p, char *text)
{
    if (!strcmp(data_of(p, 0, "name"), "ones") || !strcmp(data_of(p, 1, "name"), "ones"))
        add(text, "data: ones: all samples are alike, so that an exchange of samples would not show");
}

static void find_times(struct pair *p, char *text)
{
    const char *doubts = time_doubts(p->a, p->b, p->c->name);
    if (doubts) add(text, "%s", doubts);
}

static void find_evaluations(struct pair *p, char *text)
{
    const uint64_t *count = p->evaluations, both = (uint64_t)p->c->evaluations;
    if (both != count[0] || both != count[1])
        add(text, "of %llu and %llu evaluations, %llu are of common steps", (unsigned long long)count[0],
            (unsigned long long)count[1], (unsigned long long)both);
}

/* ---- deliberate errors ---- */

/* The fault of one side that takes effect within the steps compared; "": none. */
static void fault_of(struct pair *p, int side, char text[FAULT_TEXT])
{
    const char *kind = setting(p, side, "fault", "kind");
    int64_t step = -1;
    text_to_int(setting(p, side, "fault", "step"), &step);
    *text = 0;
    if (*kind && strcmp(kind, "none") != 0 && step >= 0 && step <= UINT32_MAX && compared(p, (uint32_t)step))
        snprintf(text, FAULT_TEXT, "%.20s at step %lld, node %.40s", kind, (long long)step,
                 setting(p, side, "fault", "node"));
    for (const struct wrong_value *w = spec_wrong_values; w->key && !*text && recomputes(side_of(p, side)); w++)
        if (!strcmp(setting(p, side, NULL, w->key), w->value)) snprintf(text, FAULT_TEXT, "%s: %s", w->key, w->value);
}

/* A fault of both sides cannot be seen in their equality. */
static void find_fault(struct pair *p, char *text)
{
    char a[FAULT_TEXT], b[FAULT_TEXT];
    fault_of(p, 0, a);
    fault_of(p, 1, b);
    if (strcmp(a, b) != 0)
        snprintf(p->c->fault, FAULT_TEXT, "%s", *b ? b : a);
    else if (*a)
        add(text, "both runs have the same deliberate error: %s", a);
}

/* ---- differences of spec and machine ---- */

static void add_unlike(const struct pair *p, const char *name, const char *a, const char *b)
{
    enum { MOST = 399 };
    ADD(json_object_get(p->c->json, "unlike"),
        json_pack("{s:s, s:s#, s:s#}", "name", name, "a", a, text_shown(a, MOST), "b", b, text_shown(b, MOST)));
}

static const char *printed(const struct pair *p, int side, const char *key)
{
    const struct yaml_tree *value = yaml_tree_get(p->spec[side], key);
    const char *text = value ? yaml_tree_print(value, p->a->region) : NULL;
    return text ? text : "";
}

/* Keys of this side's spec whose values differ in the other's; the second side adds only keys that the first lacks.
 * Left out are those that change no number of training, or that are reported elsewhere. */
static void find_keys(struct pair *p, int side)
{
    static const char *const elsewhere[] = {"costs", "plan", "policy", "record", "baseline", NULL};
    const struct yaml_tree *spec = p->spec[side];
    for (int i = 0; spec && spec->kind == YAML_MAP && p->spec[1 - side] && i < spec->count; i++) {
        const char *key = spec->key[i]->text;
        if (!spec_changes(key) || yaml_read_among(key, elsewhere)) continue;
        if (side && yaml_tree_get(p->spec[0], key)) continue;
        const char *a = printed(p, 0, key), *b = printed(p, 1, key);
        if (strcmp(a, b) != 0) add_unlike(p, key, a, b);
    }
}

/* ---- all of them ---- */

/* Besides what the plans prove, which proof_rule() says. list: "reasons" or "notes". */
static const struct {
    const char *list, *name;
    void (*find)(struct pair *p, char *text);
} remarks[] = {
    {"reasons", "copy", find_copy},
    {"reasons", "loss", find_loss},
    {"reasons", "all_gradients_zero", find_zero_step},
    {"reasons", "zero_gradients", find_zero_tensors},
    {"reasons", "not_completed", find_status},
    {"reasons", "steps", find_steps},
    {"reasons", "gaps", find_gaps},
    {"reasons", "fewer_steps", find_short},
    {"reasons", "evaluations", find_evaluations},
    {"reasons", "fault", find_fault},
    {"notes", "no_digests", find_no_digests},
    {"notes", "other_data", find_other_data},
    {"notes", "ones", find_ones},
    {"notes", "times", find_times},
};

static void add_remark(struct pair *p, const char *list, const char *name, char text[REMARK_TEXT])
{
    utf8_clean(text, ""); /* it may have been cut within a character */
    if (*text) ADD(json_object_get(p->c->json, list), json_pack("{s:s, s:s}", "name", name, "text", text));
}

static enum status find_remarks(struct pair *p)
{
    const char *reason, *why, *claim;
    PUT_ALL(p->c->json, KEY("reasons", json_array()), KEY("notes", json_array()));
    for (size_t i = 0; i < sizeof remarks / sizeof *remarks; i++) {
        char text[REMARK_TEXT] = "";
        remarks[i].find(p, text);
        add_remark(p, remarks[i].list, remarks[i].name, text);
    }
    TRY(proof_rule(p->a, p->b, p->c->name, &reason, &why, &claim));
    PUT(p->c->json, "claim", claim);
    p->c->claim = json_string_at(p->c->json, "claim"); /* lives as long as the comparison */
    if (reason) {
        char text[REMARK_TEXT] = "";
        add(text, "%s", why);
        add_remark(p, "reasons", reason, text);
    }
    return ST_OK;
}

static enum status read_spec(struct pair *p, int side)
{
    struct h5 *h5 = &side_of(p, side)->h5;
    if (!h5_exists(h5, "/spec/resolved")) return h5_status(h5);
    const char *text = h5_read_text(h5, "/spec/resolved", p->a->region);
    TRY(h5_status(h5));
    p->spec[side] = yaml_tree_of_text(text, p->a->region);
    return ST_OK;
}

enum status comparison_judge(struct pair *pair)
{
    for (int s = 0; s < 2; s++) TRY(read_spec(pair, s));
    TRY(find_remarks(pair));
    struct environment_difference found[ENVIRONMENT_ROWS];
    const int count = environment_differences(pair->a, pair->b, pair->a->region, found);
    PUT(pair->c->json, "unlike", json_array());
    for (int i = 0; i < count; i++) add_unlike(pair, found[i].name, found[i].a, found[i].b);
    for (int s = 0; s < 2; s++) find_keys(pair, s);
    return ST_OK;
}

/* ---- the verdict ---- */

const char *comparison_reason(const struct comparison *comparison, const char *name)
{
    EACH (json_object_get(comparison->json, "reasons"), i, reason)
        if (!strcmp(json_string_at(reason, "name"), name)) return json_string_at(reason, "text");
    return NULL;
}

enum verdict comparison_verdict(const struct comparison *comparison)
{
    if (comparison->differs) return VERDICT_DIFFERS;
    if (*comparison->fault) return VERDICT_NOT_CAUGHT;
    return json_array_size(json_object_get(comparison->json, "reasons")) ? VERDICT_UNPROVEN : VERDICT_EQUAL;
}

enum status comparison_status(const struct comparison *comparison)
{
    static const enum status codes[VERDICTS] = {ST_OK, ST_DIFFERS, ST_DIFFERS, ST_UNPROVEN};
    return codes[comparison_verdict(comparison)];
}
