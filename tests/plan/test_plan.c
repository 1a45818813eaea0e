/* Plans of VGG16 at its true size against numbers found by two simulations that share nothing with this program
 * (live peak in MiB at batch 64, 224x224x3, fp32, no scratch), and what a plan says of itself. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "plan/plan.h"
#include "policies/policy.h"
#include "tests/support/device_mirror.h"
#include "tests/support/layer_settings.h"
#include "tests/support/policy_text.h"
#include "tests/support/small_networks.h"

static const double MIB = 1024 * 1024;

static int append(struct graph *graph, const char *layer, struct settings settings, int x)
{
    int y = -1;
    const struct layer *definition = layer_find(layer);
    enum status status = graph_add(graph, definition, settings_of(definition, &settings), NULL, &x, &y);
    cr_assert(status == ST_OK, "%s", status_message());
    return y;
}

/* VGG16 without its loss, by blocks; the last value. */
static int vgg16(struct graph *graph)
{
    static const int channels[] = {64, 128, 256, 512, 512}, convs[] = {2, 2, 3, 3, 3};
    static const char *const names[] = {"block1", "block2", "block3", "block4", "block5"};
    int v = 0;
    for (int b = 0; b < 5; b++) {
        cr_assert(graph_group_begin(graph, names[b]) == ST_OK);
        for (int i = 0; i < convs[b]; i++) {
            struct settings conv = {.channels = channels[b], .kernel = 3, .stride = 1, .padding = 1, .bias = true};
            conv.activation = ACTIVATION_RELU;
            v = append(graph, "conv", conv, v);
        }
        v = append(graph, "max_pool", (struct settings){.kernel = 2}, v);
        graph_group_end(graph);
    }
    v = append(graph, "flatten", (struct settings){.rate = 0}, v);
    for (int i = 0; i < 2; i++)
        v = append(graph, "linear", (struct settings){.units = 4096, .activation = ACTIVATION_RELU, .bias = true}, v);
    return append(graph, "linear", (struct settings){.units = 1000, .bias = true}, v);
}

static const struct net vgg = {"vgg16", vgg16, {3, {224, 224, 3}}, 64, 1000};

static struct plan *plan_of(const struct bound_net *s, const char *policy, bool keep_saved)
{
    char settings[128];
    struct plan_options options = {.lower = {.drop_dead = true}, .state_per_parameter = 2};
    snprintf(settings, sizeof settings, "keep_saved=%s groups=block1,block2,block3,block4,block5",
             keep_saved ? "true" : "false");
    return policy_text_plan(s->network, policy, settings, &options);
}

Test(plan, vgg16_needs_what_others_found)
{
    static const struct {
        const char *policy;
        bool bits, keep_saved;
        double mib;
    } cases[] = {{"store_all", false, true, 3799},
                 {"store_all", true, true, 2422},
                 {"manual", false, true, 2352},
                 {"manual", true, false, 2058},
                 {"manual", true, true, 1617}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bound_net s = net_bind(&vgg, cases[i].bits);
        struct plan *plan = plan_of(&s, cases[i].policy, cases[i].keep_saved);
        double live = (double)plan->live_peak / MIB, ratio = (double)plan->arena_bytes / (double)plan->live_peak;
        cr_expect(live > cases[i].mib - 2 && live < cases[i].mib + 2, "%s, bits %d: live peak %.1f MiB, expected %.0f",
                  cases[i].policy, cases[i].bits, live, cases[i].mib);
        cr_expect(ratio <= 1.02, "%s, bits %d: arena : live peak is %.3f", cases[i].policy, cases[i].bits, ratio);
        plan_destroy(plan);
        net_release(&s);
    }
}

/* 138,357,544 parameters, each array rounded up; 15.47e9 multiply-adds an image (and some pooling). */
Test(plan, vgg16_says_of_itself)
{
    struct bound_net s = net_bind(&vgg, RELU_BITS);
    struct plan *stored = plan_of(&s, "store_all", true), *recomputed = plan_of(&s, "manual", true);
    char text[128];
    const size_t parameters = (size_t)138357544 * sizeof(float);
    cr_expect(stored->static_bytes[STATIC_PARAMETERS] - parameters < (size_t)s.graph->parameters * ALIGNMENT);
    cr_expect(stored->static_bytes[STATIC_GRADIENTS] == stored->static_bytes[STATIC_PARAMETERS]);
    cr_expect(stored->static_bytes[STATIC_OPTIMIZER] == 2 * stored->static_bytes[STATIC_PARAMETERS]);
    cr_expect(stored->static_bytes[STATIC_INPUTS] == (size_t)64 * 224 * 224 * 3 * sizeof(float) + 256);
    cr_expect(plan_peak(stored) == plan_static(stored) + stored->arena_bytes);
    cr_expect(plan_static(stored) == plan_static(recomputed));

    double forward = 2 * 15.47026e9 * 64;
    cr_expect(stored->forward_flops > forward && stored->forward_flops < 1.003 * forward, "%.0f flops",
              stored->forward_flops);
    cr_expect(stored->recomputations == 0 && stored->recompute_flops == 0 && stored->slowdown == 1);
    double sum = 0;
    for (int i = 0; i < recomputed->lowered.ops; i++)
        if (recomputed->lowered.op[i].recompute) sum += s.graph->node[recomputed->lowered.op[i].node].flops.forward;
    double step = recomputed->forward_flops + recomputed->backward_flops;
    cr_expect(recomputed->recomputations == 8 &&
              recomputed->recompute_flops == sum); /* every conv but the last of each block */
    cr_expect(recomputed->slowdown == (step + sum) / step);

    size_t peak = 0;
    for (int i = 0; i < CATEGORIES; i++) peak += recomputed->peak_by_category[i];
    cr_expect(peak == recomputed->live_peak && recomputed->live[recomputed->peak_op] == peak);
    cr_expect(!strcmp(plan_op_text(recomputed, recomputed->peak_op, text), "F conv1 recompute"), "%s", text);
    cr_expect(!strcmp(plan_op_text(stored, stored->lowered.ops - 1, text), "B conv1 params"), "%s", text);
    cr_expect(!strcmp(plan_buffer_text(stored, 0, text), "conv1.y"), "%s", text);
    plan_destroy(stored);
    plan_destroy(recomputed);
    net_release(&s);
}

#define MEMBER(type, name)                                                                                             \
    {                                                                                                                  \
#name, offsetof(struct type, name), sizeof(((struct type *)0)->name)                                           \
    }

/* Everything that an op and a buffer consist of. */
static const struct member {
    const char *name;
    size_t offset, bytes;
} op_members[] = {MEMBER(op, kind),    MEMBER(op, node),  MEMBER(op, parts), MEMBER(op, recompute),
                  MEMBER(op, save),    MEMBER(op, x[0]),  MEMBER(op, x[1]),  MEMBER(op, y),
                  MEMBER(op, dx[0]),   MEMBER(op, dx[1]), MEMBER(op, dy),    MEMBER(op, saved),
                  MEMBER(op, scratch), MEMBER(op, once),  MEMBER(op, bytes), MEMBER(op, gradients),
                  MEMBER(op, part)},
  buffer_members[] = {MEMBER(buffer, category), MEMBER(buffer, node),  MEMBER(buffer, bytes),
                      MEMBER(buffer, birth),    MEMBER(buffer, death), MEMBER(buffer, offset)};

/* One bit of each member of the row changes the hash, and back again. */
static void check_members(const struct plan *plan, const struct member *member, size_t members, void *row)
{
    const struct lowered *l = &plan->lowered;
    for (size_t i = 0; i < members; i++) {
        unsigned char *first = (unsigned char *)row + member[i].offset;
        struct digest digest;
        for (int turn = 0; turn < 2; turn++) {
            *first ^= 1;
            digest = ops_digest(l->op, l->ops, l->buffer, l->buffers);
            cr_expect(digest_equal(digest, plan->hash) == (turn == 1), "%s, changed %d times", member[i].name,
                      turn + 1);
        }
    }
}

Test(plan, the_hash_sees_every_member_of_every_op_and_buffer)
{
    struct bound_net s = net_bind(&vgg, RELU_BITS);
    struct plan *plan = plan_of(&s, "manual", true);
    struct lowered *l = &plan->lowered;
    size_t covered = 2 * sizeof(int) + sizeof(int *); /* operands, of traced steps alone: tests/spec/test_trace.c */
    for (size_t i = 0; i < sizeof op_members / sizeof *op_members; i++) covered += op_members[i].bytes;
    cr_assert(sizeof(struct op) - covered < _Alignof(struct op), "a member of struct op is not in the list");
    for (int i = 0; i < l->ops; i++) check_members(plan, op_members, sizeof op_members / sizeof *op_members, &l->op[i]);
    for (int i = 0; i < l->buffers; i++)
        check_members(plan, buffer_members, sizeof buffer_members / sizeof *buffer_members, &l->buffer[i]);
    plan_destroy(plan);
    net_release(&s);
}

Test(plan, the_hash_tells_plans_apart)
{
    struct bound_net s = net_bind(&vgg, RELU_BITS);
    struct plan *a = plan_of(&s, "manual", true), *b = plan_of(&s, "manual", true), *c = plan_of(&s, "manual", false);
    cr_expect(digest_equal(a->hash, b->hash));
    cr_expect(!digest_equal(a->hash, c->hash));
    plan_destroy(a);
    plan_destroy(b);
    plan_destroy(c);
    net_release(&s);
}

Test(plan, an_evaluation_goes_forward_only)
{
    struct bound_net s = net_bind(&vgg, RELU_BITS);
    struct schedule schedule = schedule_empty(s.graph->region);
    struct plan_options options = {.lower = {.drop_dead = true, .evaluate = true}};
    schedule_append(&schedule, STEP_FORWARD, 0, s.graph->nodes);
    struct plan *plan = plan_build(s.network, &schedule, &options);
    cr_expect(plan->lowered.ops == s.graph->nodes);
    cr_expect((double)plan->live_peak / MIB == 2 * 784, "live peak %.1f MiB: x and y of conv2",
              (double)plan->live_peak / MIB);
    plan_destroy(plan);
    schedule_append(&schedule, STEP_BACKWARD, 0, s.graph->nodes);
    cr_assert(schedule_check(&schedule, &(struct slicing){s.graph->nodes, 1, NULL}, true) == ST_SPEC);
    net_release(&s);
}

/* Within one budget, in slices. */
static struct plan *plan_pooled(struct bound_net *b, bool pools)
{
    int mixing;
    b->graph = net_build(&vgg, RELU_BITS);
    cr_assert(graph_slice(b->graph, 8, true, &mixing) == ST_OK, "%s", status_message());
    graph_select_first(b->graph);
    b->graph->pool_in_conv = pools;
    b->graph->fused_update = true;
    b->graph->update_part = 32 << 20;
    const struct backend_options options = {.threads = 2, .scratch_limit = 16 << 20};
    cr_assert(backend_open("cpu", &options, &b->backend) == ST_OK, "%s", status_message());
    cr_assert(network_prepare(b->graph, b->backend, &b->network) == ST_OK, "%s", status_message());
    return policy_text_plan(b->network, "optimal", "budget=1507MiB",
                            &(struct plan_options){.lower = {.drop_dead = true}});
}

/* A stretch that runs again slice by slice keeps the places of its last convolution's pool, as a plan without fused
 * pools keeps the pool's indices. */
Test(plan, vgg16_in_slices_is_no_slower_with_pools_in_convolutions)
{
    if (!backend_opens("cpu")) cr_skip_test("no cpu backend");
    struct bound_net b[2];
    struct plan *plan[2];
    for (int pools = 0; pools < 2; pools++) plan[pools] = plan_pooled(&b[pools], pools);
    cr_expect(plan[1]->slowdown <= plan[0]->slowdown + 1e-4, "%f with pools in convolutions, %f", plan[1]->slowdown,
              plan[0]->slowdown);
    for (int pools = 0; pools < 2; pools++) {
        printf("pools %d: slowdown %.4f, live peak %.1f MiB\n", pools, plan[pools]->slowdown,
               (double)plan[pools]->live_peak / MIB);
        plan_destroy(plan[pools]);
        net_release(&b[pools]);
    }
}
