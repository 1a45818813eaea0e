/* What the page takes of the tree: as much of a run as a reader can look at, whatever it has of ops, buffers, nodes and
 * files. Of the ops of each of many equal parts those with the most and with the least live bytes are kept, so that no
 * peak is lost; of the buffers the largest at any of these ops. "ops" and "nodes" say how many there were. */
#include "report/report_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { PARTS = 1000, BUFFERS_MOST = 4000, BUFFERS_OF_OP = 8, NODES_MOST = 2000, TEXTS_MOST = 50, TEXT_MOST = 20000 };

static json_t *get(const json_t *object, const char *key) { return json_object_get(object, key); }

/* A whole number of a column. */
static json_int_t at(const json_t *column, size_t i) { return json_integer_value(json_array_get(column, i)); }

/* The elements that are kept. */
static json_t *pick(const json_t *column, const bool *kept)
{
    json_t *some = json_array();
    EACH (column, i, value)
        if (kept[i]) json_array_append(some, value);
    return some;
}

/* Each column of a table, and of the tables in it. */
static json_t *pick_all(const json_t *table, const bool *kept)
{
    const char *key;
    json_t *some = json_object(), *value;
    json_object_foreach ((json_t *)table, key, value) {
        PUT(some, key, (json_is_array(value) ? pick : pick_all)(value, kept));
    }
    return some;
}

/* ---- ops and buffers ---- */

static bool *kept_ops(const json_t *plan, struct region *region)
{
    const json_t *ops = get(plan, "ops");
    const size_t count = json_array_size(get(ops, "phase")), parts = count < PARTS ? count : PARTS;
    json_int_t *live;
    bool *kept;
    const char *key;
    json_t *bytes;
    NEW(region, live, count + 1);
    NEW(region, kept, count + 1);
    json_object_foreach (get(ops, "live_bytes"), key, bytes) {
        for (size_t i = 0; i < count; i++) live[i] += at(bytes, i);
    }
    for (size_t part = 0; part < parts; part++) {
        size_t least = part * count / parts, most = least;
        for (size_t i = least; i < (part + 1) * count / parts; i++) {
            if (live[i] > live[most]) most = i;
            if (live[i] < live[least]) least = i;
        }
        kept[most] = kept[least] = true;
    }
    return kept;
}

struct held {
    json_int_t bytes, birth, death;
    size_t number;
};

static int by_bytes(const void *left, const void *right)
{
    const struct held *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* All, or those among the largest ones at an op that is kept. */
static bool *kept_buffers(const json_t *plan, const bool *kept_op, struct region *region)
{
    const json_t *buffers = get(plan, "buffers");
    const size_t count = json_array_size(get(buffers, "bytes")), ops = json_array_size(get(get(plan, "ops"), "phase"));
    struct held *held;
    bool *kept;
    NEW(region, held, count + 1);
    NEW(region, kept, count + 1);
    for (size_t i = 0; i < count; i++)
        held[i] =
            (struct held){at(get(buffers, "bytes"), i), at(get(buffers, "birth"), i), at(get(buffers, "death"), i), i};
    qsort(held, count, sizeof *held, by_bytes);
    memset(kept, count <= BUFFERS_MOST, count);
    for (size_t op = 0; op < ops; op++)
        for (size_t i = 0, found = 0; kept_op[op] && i < count && found < BUFFERS_OF_OP; i++) {
            if (held[i].birth > (json_int_t)op || (json_int_t)op > held[i].death) continue;
            kept[held[i].number] = true;
            found++;
        }
    return kept;
}

/* ---- nodes ---- */

/* Those that keep or recompute the most bytes. */
static bool *kept_nodes(const json_t *nodes, struct region *region)
{
    struct held *held;
    bool *kept;
    const size_t count = json_array_size(nodes);
    NEW(region, held, count + 1);
    NEW(region, kept, count + 1);
    EACH (nodes, i, node)
        held[i] =
            (struct held){json_integer_value(get(node, "bytes")) + json_integer_value(get(node, "recomputations")) *
                                                                       json_integer_value(get(node, "output_bytes")),
                          0, 0, i};
    qsort(held, count, sizeof *held, by_bytes);
    for (size_t i = 0; i < count && i < NODES_MOST; i++) kept[held[i].number] = true;
    return kept;
}

static json_t *thin_plan(const json_t *plan)
{
    region_auto *region = region_create();
    const json_t *nodes = get(plan, "nodes");
    const bool *op = kept_ops(plan, region);
    const char *schedule = json_string_at(plan, "schedule");
    const size_t ops = json_array_size(get(get(plan, "ops"), "phase"));
    json_t *thin = json_copy((json_t *)plan), *some, *number = json_array();
    for (size_t i = 0; i < ops; i++)
        if (op[i]) ADD(number, i);
    PUT(thin, "ops", some = pick_all(get(plan, "ops"), op));
    PUT_ALL(some, KEY("op", number), KEY("count", ops));
    PUT_ALL(thin, KEY("buffers", pick_all(get(plan, "buffers"), kept_buffers(plan, op, region))),
            KEY("nodes", pick(nodes, kept_nodes(nodes, region))), KEY("nodes_count", json_array_size(nodes)));
    if (strlen(schedule) > TEXT_MOST)
        PUT(thin, "schedule",
            region_text(region, "%.*s ... (%zu characters in all)", text_shown(schedule, TEXT_MOST), schedule,
                        strlen(schedule)));
    return thin;
}

/* ---- runs ---- */

/* The first texts of the lists of a group, such as the names of tensors that a file of weights lacks. */
static json_t *thin_group(const json_t *group)
{
    const char *key;
    json_t *thin = json_copy((json_t *)group), *value;
    json_object_foreach ((json_t *)group, key, value) {
        const size_t count = json_array_size(value);
        if (count <= TEXTS_MOST) continue;
        json_t *some = json_array();
        for (size_t i = 0; i < TEXTS_MOST; i++) json_array_append(some, json_array_get(value, i));
        json_note(some, "and %zu more", count - TEXTS_MOST);
        PUT(thin, key, some);
    }
    return thin;
}

static json_t *thin_run(const json_t *run)
{
    const char *key;
    json_t *thin = json_copy((json_t *)run), *value;
    json_object_del(thin, "op_least_ns"); /* of the trace */
    json_object_foreach ((json_t *)run, key, value) {
        if (*key == '/') PUT(thin, key, thin_group(value));
    }
    return thin;
}

json_t *report_thin(const json_t *tree)
{
    json_t *thin = json_copy((json_t *)tree), *runs = json_array(), *plans = json_array();
    EACH (get(tree, "runs"), i, run) ADD(runs, thin_run(run));
    EACH (get(tree, "plans"), k, plan) ADD(plans, thin_plan(plan));
    PUT_ALL(thin, KEY("runs", runs), KEY("plans", plans));
    return thin;
}
