#include "made_runs.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy_text.h"
#include "small_networks.h"

static void check(enum status status) { cr_assert(status == ST_OK, "%s", status_message()); }

static enum status no_open(struct dataset *dataset)
{
    (void)dataset;
    return ST_OK;
}

static const struct dataset_kind kind = {.name = "made up", .open = no_open};

void fake_plan(struct fake *f, const char *policy, const char *settings, bool drop_dead)
{
    const struct plan_options options = {.lower = {.drop_dead = drop_dead}, .state_per_parameter = 1};
    plan_destroy(f->job.plan);
    f->spec.policy = policy_find(policy);
    f->spec.policy_settings = policy_text_settings(f->spec.policy, settings, f->job.graph->region);
    const struct policy_input input = {f->job.network, &f->spec.policy_settings, &options, NULL};
    check(policy_plan(f->spec.policy, &input, &f->job.plan));
    f->live = f->job.plan->live;
}

static void describe(struct fake *f, const struct net *net)
{
    static const char *const overrides[] = {"steps: 100 -> 3"};
    static struct dataset_file file = {"train.bin", 3073, "0123456789abcdef"};
    f->spec = (struct spec){.path = "fake.yaml",
                            .text = "name: fake\n# caf\303\251\n",
                            .resolved = "rematch: 1\nname: fake\nbatch: 4\n",
                            .overrides = 1,
                            .override = overrides,
                            .name = "fake",
                            .title = "A run that never ran",
                            .batch = net->batch,
                            .steps = 3,
                            .optimizer = optimizer_find("sgd"),
                            .optimizer_settings = {.lr = 0.1, .momentum = 0.9},
                            .record_digests = true,
                            .results = f->results};
    f->dataset = (struct dataset){
        .kind = &kind, .classes = net->classes, .synthetic = true, .files = 1, .file = &file, .digest = {7, 9}};
}

void fake_open(struct fake *fake, const struct net *net, const char *results)
{
    const struct backend_options options = {.threads = 1, .scratch_limit = 1 << 20};
    memset(fake, 0, sizeof *fake);
    snprintf(fake->results, sizeof fake->results, "%s", results);
    describe(fake, net);
    fake->job = (struct job){.spec = &fake->spec, .dataset = &fake->dataset, .graph = net_build(net, false)};
    check(backend_open("ref", &options, &fake->job.backend));
    check(network_prepare(fake->job.graph, fake->job.backend, &fake->job.network));
    fake_plan(fake, "segments", "segments=2", true);
    size_t count = (size_t)fake->job.graph->parameters;
    struct region *region = fake->job.graph->region;
    NEW(region, fake->gradient, count);
    NEW(region, fake->parameter, count);
    NEW(region, fake->state, count);
    NEW(region, fake->running, (size_t)fake->job.graph->states);
}

void fake_close(struct fake *fake)
{
    plan_destroy(fake->job.plan);
    network_destroy(fake->job.network);
    graph_destroy(fake->job.graph);
    backend_close(fake->job.backend);
}

void fake_seal(const struct fake *fake, struct step_record *step)
{
    const size_t bytes = (size_t)fake->job.graph->parameters * sizeof *fake->gradient;
    step->result.gradients = digest_bytes(fake->gradient, bytes);
    step->result.parameters = digest_bytes(fake->parameter, bytes);
    step->result.state = digest_bytes(fake->state, bytes);
    if (fake->job.graph->states)
        step->result.running = digest_bytes(fake->running, (size_t)fake->job.graph->states * sizeof *fake->running);
}

enum status record_create(const struct job *job, const char *variant, struct record **record)
{
    TRY(record_begin(job, variant, record));
    const enum status status = record_start(*record, 0);
    if (status != ST_OK) *record = NULL;
    return status;
}

struct step_record fake_step(struct fake *fake, uint32_t step)
{
    const size_t count = (size_t)fake->job.graph->parameters;
    for (size_t i = 0; i < count; i++) {
        fake->gradient[i] = (struct digest){step * 1000 + i, 1};
        fake->parameter[i] = (struct digest){step * 1000 + i, 2};
        fake->state[i] = (struct digest){step * 1000 + i, 3};
    }
    for (int i = 0; i < fake->job.graph->states; i++) fake->running[i] = (struct digest){step * 1000 + (uint64_t)i, 4};
    struct step_record row = {.step = step,
                              .result.loss = 2.0F / (float)(step + 1),
                              .result.gradient_norm = 1,
                              .metric = 0.25F,
                              .total_ns = 1000 + 10 * step,
                              .live_peak = fake->job.plan->live_peak,
                              .rss = 1 << 20,
                              .result.gradient = fake->gradient,
                              .result.parameter = fake->parameter,
                              .result.parameter_state = fake->state,
                              .result.running_state = fake->running,
                              .live = step == 1 ? fake->live : NULL};
    fake_seal(fake, &row);
    return row;
}

void fake_write(struct fake *fake, const char *variant, uint32_t steps,
                void (*change)(struct fake *, struct step_record *), char path[1024])
{
    struct record *record;
    struct run_summary summary = {.high_water = 1ull << 30, .start_rss = 1 << 20, .wall_ns = 5, .setup_ns = 4};
    check(record_create(&fake->job, variant, &record));
    snprintf(path, 1024, "%s", record_path(record));
    for (uint32_t i = 0; i < steps; i++) {
        struct step_record step = fake_step(fake, i);
        if (change) change(fake, &step);
        fake_seal(fake, &step);
        check(record_step(record, &step));
    }
    const struct eval_record eval = {steps, 1.5F, 0.75F};
    check(record_eval(record, &eval));
    check(record_finish(record, "completed", &summary, NULL));
}

uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

void folder_make(char folder[256])
{
    snprintf(folder, 256, P_tmpdir "/rematch-test-XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
}

static int take_away(const char *path, const struct stat *file, int flag, struct FTW *place)
{
    (void)file, (void)flag, (void)place;
    return remove(path);
}

void folder_remove(const char *folder) { nftw(folder, take_away, 16, FTW_DEPTH | FTW_PHYS); }

static const char *wanted_tail;
static int found;

static int count_file(const char *path, const struct stat *file, int flag, struct FTW *place)
{
    (void)file, (void)place;
    size_t length = strlen(path), tail = strlen(wanted_tail);
    found += flag == FTW_F && length >= tail && strcmp(path + length - tail, wanted_tail) == 0;
    return 0;
}

int folder_count(const char *folder, const char *tail)
{
    wanted_tail = tail;
    found = 0;
    nftw(folder, count_file, 16, FTW_PHYS);
    return found;
}
