/* What equality proves by the plans of two files: one stores everything, and the other recomputes what is read. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "analysis/compare.h"
#include "tests/support/altered_files.h"
#include "tests/support/made_runs.h"

enum { STEPS = 4 };

/* Plans of two files whose bits are the same, and what that proves; %s stands for the folder; in either order. */
static const struct {
    struct {
        const char *policy, *settings;
        bool keep_dead;
    } side[2];
    const char *reason, *says; /* NULL: a proof */
} plan_pairs[] = {
    {{{"store_all", ""}, {"segments", "segments=2"}}, NULL, NULL},
    {{{"store_all", ""}, {"every", "unit=group"}}, NULL, NULL},
    {{{"store_all", ""}, {"sqrt", ""}}, NULL, NULL},
    {{{"store_all", ""}, {"segments", "segments=2", true}}, NULL, NULL},
    {{{"segments", "segments=1"}, {"every", "unit=group"}}, "no_baseline", "has policy segments"},
    {{{"segments", "segments=2"}, {"every", "unit=group"}}, "no_baseline", "neither file is of a run that stores"},
    {{{"segments", "segments=2"}, {"segments", "segments=2"}}, "no_baseline", "has policy segments"},
    {{{"store_all", ""}, {"store_all", ""}}, "no_recomputation", "policy store_all has the plan of the baseline"},
    {{{"store_all", ""}, {"segments", "segments=1"}}, "no_recomputation", "policy segments has the plan of the"},
    {{{"store_all", ""}, {"manual", "schedule=%s/dead", true}}, "no_recomputation", "makes 1 dead recomputation"},
};

static void expect_reason(const char *a, const char *b, const char *reason, const char *says)
{
    struct comparison c;
    cr_assert(compare_files(a, b, &c) == ST_OK, "%s", status_message());
    cr_assert(json_array_size(json_object_get(c.json, "reasons")) == (reason != NULL), "%s", says);
    const char *found = reason ? comparison_reason(&c, reason) : "";
    cr_expect(found && (!says || strstr(found, says)), "'%s' is not in '%s'", says, found);
    cr_expect(comparison_status(&c) == (reason ? ST_UNPROVEN : ST_OK));
    json_decref(c.json);
}

Test(proof, plans_decide_what_equality_proves)
{
    struct fake fake;
    char folder[256], path[2][1024], schedule[300];
    folder_make(folder);
    fake_open(&fake, &nets[0], folder);
    snprintf(schedule, sizeof schedule, "%s/dead", folder);
    FILE *file = fopen(schedule, "w");
    const int nodes = fake.job.graph->nodes;
    cr_assert(file && fprintf(file, "F[0,%d) F[%d,%d) B[0,%d)", nodes, nodes - 1, nodes, nodes) > 0 &&
              fclose(file) == 0);
    for (size_t i = 0; i < sizeof plan_pairs / sizeof *plan_pairs; i++) {
        for (int s = 0; s < 2; s++) {
            char settings[400];
            snprintf(settings, sizeof settings, plan_pairs[i].side[s].settings, folder);
            fake_plan(&fake, plan_pairs[i].side[s].policy, settings, !plan_pairs[i].side[s].keep_dead);
            fake_write(&fake, s ? "variant" : "baseline", STEPS, NULL, path[s]);
        }
        expect_reason(path[0], path[1], plan_pairs[i].reason, plan_pairs[i].says);
        expect_reason(path[1], path[0], plan_pairs[i].reason, plan_pairs[i].says);
    }
    alter_element(path[1], "/plan/ops/y", 3, 1);
    expect_reason(path[0], path[1], "wrong_plan", "the plan of variant is wrong: ");
    fake_close(&fake);
    folder_remove(folder);
}

/* Of a file that another program recorded, what it says of itself stands for the plan, and the verdict says that. */
Test(proof, a_claim_stands_for_a_plan_and_is_called_one)
{
    struct fake fake;
    char folder[256], path[2][1024];
    folder_make(folder);
    fake_open(&fake, &nets[0], folder);
    fake_plan(&fake, "store_all", "", true);
    fake_write(&fake, "baseline", STEPS, NULL, path[0]);
    fake_plan(&fake, "every", "unit=group", true);
    fake_write(&fake, "variant", STEPS, NULL, path[1]);
    alter_text(path[1], "/plan", "claimed_by", "torch 2.15");
    for (int order = 0; order < 2; order++) {
        struct comparison c;
        cr_assert(compare_files(path[order], path[1 - order], &c) == ST_OK, "%s", status_message());
        cr_expect(comparison_status(&c) == ST_OK && c.claim && strstr(c.claim, "is a claim of torch 2.15 that"));
        json_auto_t *all = comparison_json(&c);
        cr_expect(json_is_false(json_object_get(all, "proven")) && strstr(json_string_at(all, "sentence"), "claim"));
        json_decref(c.json);
    }
    alter_number(path[1], "/plan", "recomputations", 0);
    expect_reason(path[0], path[1], "no_recomputation", "nothing is recomputed: torch 2.15 claims so");
    alter_text(path[0], "/plan", "claimed_by", "jax");
    alter_number(path[0], "/plan", "recomputations", 3);
    alter_number(path[1], "/plan", "recomputations", 2);
    expect_reason(path[0], path[1], "no_baseline", "claims to recompute 2 times");
    fake_close(&fake);
    folder_remove(folder);
}
