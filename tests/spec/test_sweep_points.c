/* The points of a sweep, and the expectations that are judged at each, beside points written out by hand. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "spec/spec.h"
#include "tests/support/spec_text.h"

TestSuite(sweep_points, .init = spec_text_begin, .fini = spec_text_end);

static const char *points_text(const struct spec *spec)
{
    static char text[2048];
    size_t used = 0;
    *text = '\0';
    for (int p = 0; p < spec->points; p++)
        for (int a = 0; a < spec->axes; a++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                     a   ? " "
                                     : p ? " | "
                                         : "",
                                     spec->axis[a].text[spec->point[p * spec->axes + a]]);
    return text;
}

static const struct {
    const char *sweep, *overrides, *keys, *points; /* keys: of the axes */
} cases[] = {
    {"{batch: [8, 16], seed: [1, 2]}", "", "batch seed", "8 1 | 8 2 | 16 1 | 16 2"},
    {"{batch: {from: 8, to: 20, step: 6}}", "", "batch", "8 | 14 | 20"},
    {"{batch: {from: 8, to: 19, step: 6}}", "", "batch", "8 | 14"},
    {"{seed: {from: 3, to: 5}}", "", "seed", "3 | 4 | 5"},
    {"{optimizer.lr: {from: 0.1, to: 0.3, step: 0.1}}", "", "optimizer.lr", "0.1 | 0.2 | 0.3"},
    {"{optimizer.lr: {from: 1e-4, to: 0.1, times: 10}}", "", "optimizer.lr", "0.0001 | 0.001 | 0.01 | 0.1"},
    {"{batch: {from: 4, to: 33, times: 2}}", "", "batch", "4 | 8 | 16 | 32"},
    {"{zip: {batch: [8, 16], steps: [4, 2]}}", "", "batch steps", "8 4 | 16 2"},
    {"{seed: [1, 2], zip: {batch: [8, 16], steps: [4, 2]}, rng: [counter, mask]}", "", "seed batch steps rng",
     "1 8 4 counter | 1 8 4 mask | 1 16 2 counter | 1 16 2 mask | 2 8 4 counter | 2 8 4 mask | 2 16 2 counter | 2 16 2 "
     "mask"},
    {"{batch: [8, 16], seed: [1, 2], exclude: [{batch: 8, seed: 2}]}", "", "batch seed", "8 1 | 16 1 | 16 2"},
    {"{batch: [8, 16, 32], seed: [1, 2], exclude: [{batch: 8, seed: 2}, {batch: 16}]}", "", "batch seed",
     "8 1 | 32 1 | 32 2"},
    {"{zip: {batch: [8, 16, 32], steps: [4, 2, 1]}, exclude: [{steps: 2}]}", "", "batch steps", "8 4 | 32 1"},
    /* what is set on the command line is not swept: exclusions at that value stay, the others go */
    {"{batch: [8, 16], seed: [1, 2], exclude: [{batch: 8, seed: 2}]}", "batch=8", "seed", "1"},
    {"{batch: [8, 16], seed: [1, 2], exclude: [{batch: 8, seed: 2}]}", "batch=16", "seed", "1 | 2"},
    {"{batch: [8, 16], seed: [1, 2], exclude: [{batch: 8}]}", "batch=8", "seed", "1 | 2"},
    {"{zip: {batch: [8, 16], steps: [4, 2]}, seed: [1, 2]}", "batch=8", "steps seed", "4 1 | 4 2 | 2 1 | 2 2"},
    {"{zip: {batch: [8, 16], steps: [4, 2]}, seed: [1, 2]}", "epochs=1", "batch seed", "8 1 | 8 2 | 16 1 | 16 2"},
    {"{zip: {batch: [8, 16], steps: [4, 2]}}", "batch=8 steps=4", "", ""},
    {"{policy: [sqrt, {name: segments, segments: 2}], seed: [1, 2], exclude: [{policy: sqrt, seed: 1}]}", "policy=sqrt",
     "seed", "2"},
};

Test(sweep_points, are_those_written_out)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024], keys[256] = "";
        snprintf(text, sizeof text, MINIMAL "sweep: %s\n", cases[i].sweep);
        struct spec *spec = load_well(text, cases[i].overrides, false);
        for (int a = 0; a < spec->axes; a++) {
            const size_t used = strlen(keys);
            snprintf(keys + used, sizeof keys - used, "%s%s", a ? " " : "", spec->axis[a].key);
        }
        cr_expect(!strcmp(keys, cases[i].keys), "%s %s: %s", cases[i].sweep, cases[i].overrides, keys);
        cr_expect(!strcmp(points_text(spec), cases[i].points), "%s %s: %s", cases[i].sweep, cases[i].overrides,
                  points_text(spec));
        struct spec *again = load_well(spec->resolved, "", false);
        cr_expect(!strcmp(points_text(again), cases[i].points), "the resolved text of %s", cases[i].sweep);
        spec_destroy(again), spec_destroy(spec);
    }
}

static const struct {
    const char *overrides, *judged; /* by expectation: the points, from 1, that it is judged at */
} judged[] = {
    {"", "1234 13 4"}, {"batch=8", "12 1"}, {"seed=2", "12 2"}, {"seed=1", "12 12"}, {"batch=16 seed=2", "1 1"},
};

/* An expectation at a value that is set instead is judged as if it were swept; at another value, it is left out. */
Test(sweep_points, have_the_expectations_at_their_values)
{
    static const char text[] =
        MINIMAL "expect:\n  - {what: loss, below: 9, source: s}\n  - {what: loss, below: 8, source: s, at: {seed: 1}}\n"
                "  - {what: loss, below: 7, source: s, at: {seed: 2, batch: 16}}\n"
                "sweep: {batch: [8, 16], seed: [1, 2]}\n";
    for (size_t i = 0; i < sizeof judged / sizeof *judged; i++) {
        char found[64] = "";
        struct spec *spec = load_well(text, judged[i].overrides, false), *again = load_well(spec->resolved, "", false);
        for (int e = 0, used = 0; e < spec->expectations; e++) {
            used += snprintf(found + used, sizeof found - (size_t)used, "%s", e ? " " : "");
            for (int p = 0; p < (spec->points ? spec->points : 1); p++)
                if (sweep_point_meets(spec, p, spec->expectation[e].value))
                    used += snprintf(found + used, sizeof found - (size_t)used, "%d", p + 1);
        }
        cr_expect(!strcmp(found, judged[i].judged), "%s: %s", judged[i].overrides, found);
        cr_expect(!strcmp(spec->resolved, again->resolved), "%s became %s", spec->resolved, again->resolved);
        spec_destroy(again), spec_destroy(spec);
    }
}
