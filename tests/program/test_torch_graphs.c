/* Joint graphs that experiments/torch exported, as any other graph file: planned by several policies and judged. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cli.h"

/* live: bytes that store_all has live at most; least: a budget of optimal that some schedule keeps. once: operators
 * that draw, or read what the forward moves, and so run once; kept: masks of dropout and what statistics become. */
static const struct {
    const char *name;
    int forwards, backwards;
    double live, least;
    int once, kept;
} graphs[] = {{"resnet", 42, 36, 382816, 170000, 10, 18},
              {"gpt", 79, 105, 536968, 240000, 1, 10},
              {"unet", 50, 41, 628096, 190000, 11, 20},
              {"llama", 182, 237, 887368, 420000, 1, 0}};

static const struct {
    const char *policy;
    double share; /* of what store_all has live; 0: no budget */
} policies[] = {{"policy=store_all", 1},
                {"policy=every", 0},
                {"policy=chen", 0},
                {"policy.name=revolve policy.slots=2", 0},
                {"policy.name=dtr policy.budget=80%", 0.8},
                {"policy.name=optimal policy.budget=80%", 0.8},
                {"policy.name=optimal policy.budget=65%", 0.65},
                {"policy.name=optimal policy.budget=least", 0}};

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    cr_assert(json_is_number(value), "%s is no number", key);
    return json_number_value(value);
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

static json_t *load(const char *path)
{
    json_error_t error;
    json_t *file = json_load_file(path, 0, &error);
    cr_assert(file, "%s: %s", path, error.text);
    return file;
}

/* The operator in the file; NULL: no such one. */
static const json_t *operator_called(const json_t *file, const char *name)
{
    const json_t *one;
    size_t i;
    json_array_foreach (json_object_get(file, "operators"), i, one)
        if (!strcmp(text(one, "name"), name)) return one;
    return NULL;
}

static int count(const json_t *list, const char *key, const char *value)
{
    const json_t *one;
    size_t i;
    int found = 0;
    json_array_foreach (list, i, one)
        found += value ? !strcmp(text(one, key), value) : json_is_true(json_object_get(one, key));
    return found;
}

/* First forwards and backwards are those of the file in its order, and what is random runs once. */
static void check_ops(const json_t *file, const json_t *ops, int backwards)
{
    const json_t *operators = json_object_get(file, "operators"), *op;
    size_t i, next = 0;
    int back = 0;
    json_array_foreach (ops, i, op) {
        const json_t *own = operator_called(file, text(op, "name"));
        cr_assert(own, "%s is not in the file", text(op, "name"));
        const bool again = json_is_true(json_object_get(op, "recompute"));
        cr_expect(!again || !json_is_true(json_object_get(own, "random")), "%s runs again", text(op, "name"));
        if (again) continue;
        while (next < json_array_size(operators) && json_array_get(operators, next) != own) next++;
        cr_assert(next < json_array_size(operators), "%s is out of order", text(op, "name"));
        back += !strcmp(text(op, "pass"), "backward");
    }
    cr_expect(back == backwards, "%d backwards", back);
}

Test(torch_graphs, are_what_was_traced)
{
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        char path[256];
        snprintf(path, sizeof path, "tests/torch_graphs/%s.json", graphs[i].name);
        json_t *file = load(path);
        const json_t *operators = json_object_get(file, "operators"), *tensors = json_object_get(file, "tensors");
        const int backwards = count(operators, "phase", "backward");
        cr_expect(backwards == graphs[i].backwards, "%s: %d backwards", path, backwards);
        cr_expect((int)json_array_size(operators) - backwards == graphs[i].forwards, "%s", path);
        cr_expect(count(operators, "random", NULL) == graphs[i].once, "%s", path);
        cr_expect(count(tensors, "kept", NULL) == graphs[i].kept, "%s: %d kept", path, count(tensors, "kept", NULL));
        json_decref(file);
    }
}

Test(torch_graphs, plans_of_all_policies_are_right, .timeout = 120)
{
    struct cli cli;
    char arguments[512], path[256], here[4096];
    cr_assert(realpath("tests/torch_graphs", here));
    cli_open(&cli);
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        snprintf(path, sizeof path, "tests/torch_graphs/%s.json", graphs[i].name);
        json_t *file = load(path);
        for (size_t k = 0; k < sizeof policies / sizeof *policies; k++) {
            snprintf(arguments, sizeof arguments, "plan --graph %.300s/%s.json %s --alone --ops --json --out plan.h5",
                     here, graphs[i].name, policies[k].policy);
            json_t *plan = cli_json(&cli, 0, arguments);
            const double live = number(plan, "live_peak_bytes");
            cr_expect(policies[k].share == 0 || live <= policies[k].share * graphs[i].live, "%s: %g bytes", arguments,
                      live);
            cr_expect(k || live == graphs[i].live, "%s: %g bytes", arguments, live);
            cr_expect(!strstr(policies[k].policy, "least") || live <= graphs[i].least, "%s: %g bytes", arguments, live);
            check_ops(file, json_object_get(plan, "ops"), graphs[i].backwards);
            json_decref(plan);
            cli_expect(&cli, 0, "verify --plan-only plan.h5");
            cli_says(&cli, "plan      right: ");
        }
        json_decref(file);
    }
    cli_close(&cli);
}

/* Batch norm in evaluation saves tensors without elements, which its backward reads. */
Test(torch_graphs, what_is_saved_may_have_no_bytes)
{
    static const char empty[] =
        "rematch: 1\nname: empty\nbatch: 1\ngradients: written\ntensors:\n"
        "  - {name: x, bytes: 512, constant: true}\n  - {name: a, bytes: 512}\n  - {name: nothing, bytes: 0}\n"
        "  - {name: b, bytes: 512}\n  - {name: l, bytes: 4}\n  - {name: dl, bytes: 512}\n  - {name: db, bytes: 512}\n"
        "  - {name: dx, bytes: 512}\noperators:\n"
        "  - {name: norm, time: 1, reads: [x], writes: [a, nothing]}\n"
        "  - {name: relu, time: 1, reads: [a], writes: [b]}\n"
        "  - {name: sum, time: 1, reads: [b], writes: [l]}\n"
        "  - {name: dsum, phase: backward, time: 1, reads: [l], writes: [dl]}\n"
        "  - {name: drelu, phase: backward, time: 1, reads: [dl, b], writes: [db]}\n"
        "  - {name: dnorm, phase: backward, time: 1, reads: [db, a, nothing], writes: [dx]}\n";
    struct cli cli;
    char arguments[256];
    cli_open(&cli);
    cli_file(&cli, "empty.yaml", empty);
    for (size_t k = 0; k < sizeof policies / sizeof *policies; k++) {
        if (policies[k].share > 0 && policies[k].share < 1) continue;
        snprintf(arguments, sizeof arguments, "plan --graph empty.yaml %s --alone --out plan.h5", policies[k].policy);
        cli_expect(&cli, 0, arguments);
        cli_expect(&cli, 0, "verify --plan-only plan.h5");
    }
    cli_expect(&cli, 0, "plan --graph empty.yaml policy=dtr --alone");
    cli_close(&cli);
}
