/* Times: every pass of every net on every backend has one, measured in the memory of one op, after what a step would
 * have done before it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "policies/policy.h"
#include "search/bounds.h"
#include "tests/support/device_mirror.h"
#include "tests/support/policy_text.h"
#include "tests/support/sliced_schedules.h"
#include "tests/support/small_networks.h"
#include "train/node_timing.h"

static const struct measure_options once = {1, 0};

struct planned {
    struct backend *backend;
    struct graph *graph;
    struct network *network;
    int nodes[64];
};

static struct planned prepare(struct graph *graph, const char *backend)
{
    struct planned p = {.graph = graph};
    const struct backend_options options = {.threads = 2, .graph = true, .scratch_limit = 1 << 20};
    cr_assert(backend_open(backend, &options, &p.backend) == ST_OK, "%s", status_message());
    cr_assert(network_prepare(p.graph, p.backend, &p.network) == ST_OK, "%s", status_message());
    cr_assert(p.graph->nodes <= 64);
    for (int i = 0; i < p.graph->nodes; i++) p.nodes[i] = i;
    return p;
}

static struct planned set_up(const struct net *net, const char *backend, bool bits)
{
    return prepare(net_build(net, bits), backend);
}

static void tear_down(struct planned *p)
{
    network_destroy(p->network);
    graph_destroy(p->graph);
    backend_close(p->backend);
}

static void check_times(const struct planned *p, const struct measure_options *options, const char *what)
{
    struct measured times[64];
    int rounds;
    cr_assert(measure_nodes(p->network, p->nodes, p->graph->nodes, options, times, &rounds) == ST_OK, "%s",
              status_message());
    cr_assert(rounds == options->rounds_least);
    for (int i = 0; i < p->graph->nodes; i++) {
        const struct node *node = &p->graph->node[i];
        const struct footprint *f = &p->network->binding[i].footprint;
        const unsigned parts = network_parts(p->network, i);
        const struct measured *t = &times[i];
        const double *params = &t->backward[PART_INDEX_PARAMS], *input = &t->backward[PART_INDEX_INPUT];
        bool both = parts == (PART_PARAMS | PART_INPUT);
        cr_assert(t->forward >= 0 && t->forward < 1e10 && (!node->parameters || t->forward > 0), "%s %s", what,
                  node->name);
        cr_assert(f->saved || f->once ? t->saving >= t->forward : t->saving == t->forward, "%s %s", what, node->name);
        cr_assert((*params > 0) == !!(parts & PART_PARAMS), "%s %s: %g", what, node->name, *params);
        cr_assert((*input > 0) == (parts & PART_INPUT && (!both || f->split)), "%s %s: %g", what, node->name, *input);
    }
}

Test(measure, every_pass_has_a_time)
{
    static const char *const backends[] = {"ref", "cpu"};
    for (int b = 0; b < 2; b++)
        for (const struct net *net = nets; net->name; net++)
            for (int bits = 0; bits < 2; bits++) {
                struct planned p = set_up(net, backends[b], bits);
                check_times(&p, &once, net->name);
                tear_down(&p);
            }
}

/* ---- on a device ---- */

static const struct kernel *counted;
static int calls;

static enum status count_forward(void *state, const struct kernel_args *args)
{
    calls++;
    return counted->forward(state, args);
}

static enum status count_backward(void *state, const struct kernel_args *args)
{
    calls++;
    return counted->backward(state, args);
}

/* The calls for one node in so many rounds. Where it has several passes each is recorded anew in its turn, since
 * another pass's recording would be timed otherwise; a single pass is called, then recorded. */
static int expected_calls(const struct planned *p, int node, int rounds)
{
    const struct footprint *f = &p->network->binding[node].footprint;
    const unsigned parts = network_parts(p->network, node);
    const int backward = parts == (PART_PARAMS | PART_INPUT) && f->split ? 2 : parts != 0;
    const int passes = 1 + (f->saved || f->once) + backward;
    return passes > 1 ? rounds * passes : 2;
}

Test(measure, a_device_records_every_pass)
{
    static const struct measure_options thrice = {3, 0};
    if (!backend_opens("cuda")) cr_skip_test("no device");
    for (const struct net *net = nets; net->name; net++) {
        struct planned p = set_up(net, "cuda", false);
        for (int i = 0; i < p.graph->nodes; i++) {
            struct binding *binding = &p.network->binding[i];
            struct kernel counting = *(counted = binding->kernel);
            struct measured times;
            int rounds;
            counting.forward = count_forward;
            counting.backward = count_backward;
            binding->kernel = &counting;
            calls = 0;
            cr_assert(measure_nodes(p.network, &i, 1, &thrice, &times, &rounds) == ST_OK, "%s", status_message());
            cr_assert(calls == expected_calls(&p, i, rounds), "%s %s: %d calls", net->name, p.graph->node[i].name,
                      calls);
            binding->kernel = counted;
        }
        check_times(&p, &thrice, net->name);
        tear_down(&p);
    }
}

/* ---- memory ---- */

enum { GUARD = 1 << 12, BLOCKS = 8 };
static struct {
    unsigned char *at;
    size_t bytes;
} reserved[BLOCKS];
static size_t reserved_bytes;

/* As the backend's own, but in memory that detects writes past its end. */
static enum status guarded_reserve(struct backend *backend, size_t bytes, void **block)
{
    (void)backend;
    int i = 0;
    while (reserved[i].at) cr_assert(++i < BLOCKS);
    reserved[i].at = aligned_alloc(GUARD, (bytes + 2 * GUARD - 1) / GUARD * GUARD);
    reserved[i].bytes = bytes;
    cr_assert(reserved[i].at);
    memset(reserved[i].at, 0, bytes);
    memset(reserved[i].at + bytes, 0x5A, GUARD / 2);
    reserved_bytes += bytes;
    *block = reserved[i].at;
    return ST_OK;
}

static void guarded_unreserve(struct backend *backend, void *block, size_t bytes)
{
    (void)backend;
    int i = 0;
    while (reserved[i].at != block) cr_assert(++i < BLOCKS, "what was not reserved");
    cr_assert(reserved[i].bytes == bytes);
    for (int g = 0; g < GUARD / 2; g++) cr_assert(reserved[i].at[bytes + (size_t)g] == 0x5A, "byte %d behind", g);
    free(block);
    reserved[i].at = NULL;
}

/* Node by node, so that each has a block of its own bytes. */
Test(measure, writes_only_its_own_memory)
{
    for (const struct net *net = nets; net->name; net++)
        for (int bits = 0; bits < 2; bits++) {
            struct planned p = set_up(net, "ref", bits);
            struct backend_kind guarded = *p.backend->kind;
            const struct backend_kind *own = p.backend->kind;
            guarded.reserve = guarded_reserve;
            guarded.unreserve = guarded_unreserve;
            p.backend->kind = &guarded;
            for (int i = 0; i < p.graph->nodes; i++) {
                struct measured times;
                int rounds;
                reserved_bytes = 0;
                cr_assert(measure_nodes(p.network, &i, 1, &once, &times, &rounds) == ST_OK, "%s", status_message());
                cr_assert(reserved_bytes == measure_bytes(p.network, &i, 1) + (size_t)net->batch * sizeof(int32_t));
            }
            struct measured_rest rest;
            const struct optimizer_settings settings = {.lr = 0.1, .momentum = bits ? 0.9 : 0};
            cr_assert(measure_rest(p.network, optimizer_find("sgd"), &settings, &once, &rest) == ST_OK);
            for (int i = 0; i < BLOCKS; i++) cr_assert(!reserved[i].at, "not given back");
            p.backend->kind = own;
            tear_down(&p);
        }
}

/* A key contains "in place" exactly where a plan that stores everything works in place. */
Test(measure, y_lies_over_x_where_a_step_puts_it_there)
{
    static const char *const backends[] = {"ref", "cpu"};
    const struct plan_options options = {.lower = {.drop_dead = true}};
    int over = 0, apart = 0;
    for (int b = 0; b < 2; b++)
        for (const struct net *net = nets; net->name; net++)
            for (int bits = 0; bits < 2; bits++) {
                struct planned p = set_up(net, backends[b], bits);
                struct plan *plan = policy_text_plan(p.network, "store_all", "", &options);
                for (int i = 0; i < plan->lowered.ops; i++) {
                    const struct op *op = &plan->lowered.op[i];
                    const bool there = op->x[0] >= 0 && op->y == op->x[0];
                    if (op->kind != OP_FORWARD) continue;
                    const char *key = measure_key(p.network, op->node, p.graph->region);
                    cr_assert((strstr(key, ", in place") != NULL) == there, "%s: %s", p.graph->node[op->node].name,
                              key);
                    over += there;
                    apart += !there && p.network->binding[op->node].footprint.y_over_x;
                }
                plan_destroy(plan);
                tear_down(&p);
            }
    cr_assert(over > 0 && apart > 0, "%d, %d", over, apart);
}

/* ---- the order of writes and passes ---- */

/* What happened, a letter each: an operand is Written, the Distance accessed, Forward, Backward. */
static struct {
    char events[64];
    size_t count;
    const void *written; /* the last operand */
    int newest;          /* of the node's inputs */
    const struct backend_kind *backend;
    const struct kernel *kernel;
} spied;

static void note(char event)
{
    cr_assert(spied.count + 1 < sizeof spied.events);
    spied.events[spied.count++] = event;
    spied.events[spied.count] = 0;
}

static void spied_upload(struct backend *backend, void *to, const void *from, size_t bytes)
{
    note('W');
    spied.written = to;
    spied.backend->upload(backend, to, from, bytes);
}

static void spied_fill(struct backend *backend, void *to, uint32_t pattern, size_t bytes)
{
    note('D');
    spied.backend->fill(backend, to, pattern, bytes);
}

static void spied_add(struct backend *backend, float *out, const float *a, const float *b, size_t count)
{
    note('A');
    spied.backend->add(backend, out, a, b, count);
}

static enum status spied_forward(void *state, const struct kernel_args *args)
{
    note('F');
    cr_assert(args->x[spied.newest] == spied.written, "%s: another operand is the newest", spied.events);
    return spied.kernel->forward(state, args);
}

static enum status spied_backward(void *state, const struct kernel_args *args)
{
    note('B');
    cr_assert(!args->dy || args->dy == spied.written, "%s: dy is not the newest", spied.events);
    return spied.kernel->backward(state, args);
}

/* Parameters, and what a first forward writes once; then for each forward every input but the newest, the distance, the
 * newest; then for the backward the distance, dy, which a loss has not, and as many calls as there are ops. */
static void expect_events(const struct planned *p, int index)
{
    const struct node *node = &p->graph->node[index];
    const struct footprint *f = &p->network->binding[index].footprint;
    const unsigned parts = network_parts(p->network, index);
    char expected[sizeof spied.events] = "";
    for (int i = 0; i < node->parameters; i++) strcat(expected, "W");
    if (f->once) strcat(expected, "W");
    for (int forwards = f->saved || f->once ? 2 : 1; forwards > 0; forwards--)
        strcat(expected, node->layer->inputs > 1 ? "WDWF" : "DWF");
    if (parts) strcat(expected, node->layer->loss ? "DB" : "DWB");
    if (f->split && parts == (PART_PARAMS | PART_INPUT)) strcat(expected, "B");
    cr_assert(!strcmp(spied.events, expected), "%s: %s, not %s", node->name, spied.events, expected);
}

/* What happens while node i is timed once. */
static void spy(const struct planned *p, int i)
{
    const struct node *node = &p->graph->node[i];
    struct backend_kind kind = *p->backend->kind;
    struct kernel kernel = *p->network->binding[i].kernel;
    struct measured times;
    int rounds;
    spied.backend = p->backend->kind;
    spied.kernel = p->network->binding[i].kernel;
    spied.count = 0;
    spied.newest = node->layer->inputs > 1 && node->inputs[1] > node->inputs[0];
    kind.upload = spied_upload;
    kind.fill = spied_fill;
    kind.add = spied_add;
    kernel.forward = spied_forward;
    kernel.backward = spied_backward;
    p->backend->kind = &kind;
    p->network->binding[i].kernel = &kernel;
    cr_assert(measure_nodes(p->network, &i, 1, &once, &times, &rounds) == ST_OK, "%s", status_message());
    p->network->binding[i].kernel = spied.kernel;
    p->backend->kind = spied.backend;
}

Test(measure, the_newest_operand_is_written_last)
{
    int pairs = 0;
    for (const struct net *net = nets; net->name; net++) {
        struct planned p = set_up(net, "ref", true);
        for (int i = 0; i < p.graph->nodes; i++) {
            spy(&p, i);
            expect_events(&p, i);
            pairs += p.graph->node[i].layer->inputs > 1;
        }
        tear_down(&p);
    }
    cr_assert(pairs > 0);
}

/* Of a slice after the first, the gradients of the parameters are added: the parts that write them are timed again,
 * with dy as new, and an Addition a parameter. */
static void expect_additions(const struct planned *p, int index)
{
    const struct node *node = &p->graph->node[index];
    const unsigned parts = network_parts(p->network, index);
    const bool split = p->network->binding[index].footprint.split && parts == (PART_PARAMS | PART_INPUT);
    char expected[sizeof spied.events] = "DWB";
    if (node->parameters && !p->graph->whole[index]) {
        strcat(expected, "DWB");
        for (int i = 0; i < node->parameters; i++) strcat(expected, "A");
    }
    if (split) strcat(expected, "B");
    const size_t length = strlen(expected);
    cr_assert(spied.count >= length && !strcmp(spied.events + spied.count - length, expected), "%s: %s, not %s",
              node->name, spied.events, expected);
}

Test(measure, slices_add_their_gradients)
{
    int sliced = 0, whole = 0;
    for (const struct net *net = nets; net->name; net++) {
        struct graph *graph = net_build(net, RELU_BITS);
        struct source source = {.seed = 4};
        sliced_graph(graph, net->batch, 4, &source);
        struct planned p = prepare(graph, "ref");
        for (int i = 0; i < p.graph->nodes; i++) {
            if (!network_parts(p.network, i) || p.graph->node[i].layer->loss) continue;
            spy(&p, i);
            expect_additions(&p, i);
            sliced += p.graph->node[i].parameters && !p.graph->whole[i];
            whole += p.graph->node[i].parameters && p.graph->whole[i];
        }
        tear_down(&p);
    }
    cr_assert(sliced > 5 && whole > 0, "%d, %d", sliced, whole);
}

/* Of a network whose values outweigh its parameters; nothing is reserved. */
Test(measure, takes_less_memory_than_a_step)
{
    const struct net wide = {"wide", nets[0].build, {3, {64, 64, 3}}, 4096, 5};
    struct planned p = set_up(&wide, "ref", false);
    struct plan *plan = policy_text_plan(p.network, "store_all", "", NULL);
    const struct bounds bounds = bounds_find(p.network, SIZE_MAX / 2);
    size_t bytes = measure_bytes(p.network, p.nodes, p.graph->nodes);
    cr_assert(bytes >= bounds.memory && bytes < plan->live_peak, "%zu, of at least %zu, a step has %zu", bytes,
              bounds.memory, plan->live_peak);
    plan_destroy(plan);
    tear_down(&p);
}

/* The block of vgg's fourth and fifth: three convolutions of which the last two are alike, then three alike on
 * quarter-size images. */
Test(measure, nodes_that_are_alike_have_one_key)
{
    static const char *const alike[][2] = {{"conv6", "conv7"}, {"conv9", "conv10"}, {"conv11", "conv13"}},
                             *const unlike[][2] = {{"conv1", "conv2"},
                                                   {"conv5", "conv6"},
                                                   {"conv10", "conv11"},
                                                   {"max_pool4", "max_pool5"},
                                                   {"linear1", "linear2"}};
    struct planned p = set_up(&nets[2], "cpu", false), q = set_up(&nets[2], "ref", false),
                   bits = set_up(&nets[2], "cpu", true);
    struct region *r = region_create();
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++) {
        const char *a = measure_key(p.network, graph_find_node(p.graph, alike[i][0]), r);
        const char *b = measure_key(p.network, graph_find_node(p.graph, alike[i][1]), r);
        cr_assert(!strcmp(a, b), "%s\n%s", a, b);
        a = measure_key(q.network, graph_find_node(q.graph, alike[i][0]), r);
        cr_assert(strcmp(a, b), "another implementation: %s", a);
        a = measure_key(bits.network, graph_find_node(bits.graph, alike[i][0]), r);
        cr_assert(strcmp(a, b), "sign bits: %s", a);
    }
    for (size_t i = 0; i < sizeof unlike / sizeof *unlike; i++) {
        const char *a = measure_key(p.network, graph_find_node(p.graph, unlike[i][0]), r);
        const char *b = measure_key(p.network, graph_find_node(p.graph, unlike[i][1]), r);
        cr_assert(strcmp(a, b), "%s and %s: %s", unlike[i][0], unlike[i][1], a);
    }
    const int node = graph_find_node(p.graph, "conv6");
    const char *before = measure_key(p.network, node, r);
    p.network->binding[node].footprint.implementation = "another";
    cr_assert(strcmp(before, measure_key(p.network, node, r)), "%s", before);
    region_destroy(r);
    tear_down(&p);
    tear_down(&q);
    tear_down(&bits);
}

/* Gradients are added where a value has two readers. */
static void check_rest(const char *backend)
{
    static const struct optimizer_settings settings = {.lr = 0.1, .momentum = 0.9};
    static const struct measure_options twice = {2, 0};
    for (const struct net *net = nets; net->name; net++) {
        struct planned p = set_up(net, backend, false);
        struct measured_rest rest;
        const bool sums = strcmp(net->name, "small_cnn") != 0 && strcmp(net->name, "vgg") != 0;
        cr_assert(measure_rest(p.network, optimizer_find("sgd"), &settings, &twice, &rest) == ST_OK, "%s",
                  status_message());
        cr_assert(rest.digest > 0 && rest.optimizer > 0 && isfinite(rest.digest));
        cr_assert((rest.add > 0) == sums && (rest.copy > 0) == sums && isfinite(rest.add), "%s", net->name);
        tear_down(&p);
    }
}

Test(measure, the_rest_of_a_step_has_its_times)
{
    check_rest("cpu");
    if (backend_opens("cuda")) check_rest("cuda");
}
