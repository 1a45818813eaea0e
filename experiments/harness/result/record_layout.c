/* The layout of a result file before its first step. Contract: afterwards only rows are added, and at the end the
 * summary. */
#include "result/record_layout.h"

#include <stdlib.h>
#include <time.h>

#include "build.h"
#include "result/h5_write.h"
#include "result/provenance.h"
#include "result/record_plan.h"
#include "result/record_rows.h"
#include "result/record_state.h"

#define STEP(member) offsetof(struct step_record, member)
#define EVAL(member) offsetof(struct eval_record, member)

static const char digest_doc[] = "XXH3-128 of the tensor digests in parameter order; low word, high word";

const struct column record_step_columns[] = {
    {"step", NUMBER_U32, 1, STEP(step), NULL, "number of the training step, from 0"},
    {"loss", NUMBER_F32, 1, STEP(loss), "1", "loss of the batch before the update"},
    {"loss_bits", NUMBER_U32, 1, STEP(loss), NULL, "IEEE-754 binary32 pattern of loss"},
    {"metric", NUMBER_F32, 1, STEP(metric), "1", "share of the batch that is predicted correctly"},
    {"lr", NUMBER_F64, 1, STEP(lr), "1", "learning rate of the update"},
    {"grad_norm", NUMBER_F64, 1, STEP(gradient_norm), "1", "L2 norm of all gradients, before they are clipped"},
    {"total_ns", NUMBER_U64, 1, STEP(total_ns), "ns",
     "the whole step: the times of the following columns, and the time between ops"},
    {"data_ns", NUMBER_U64, 1, STEP(data_ns), "ns", "reading the batch"},
    {"forward_ns", NUMBER_U64, 1, STEP(phase_ns[PHASE_FORWARD]), "ns", "first forwards"},
    {"recompute_ns", NUMBER_U64, 1, STEP(phase_ns[PHASE_RECOMPUTE]), "ns", "recomputed forwards"},
    {"backward_ns", NUMBER_U64, 1, STEP(phase_ns[PHASE_BACKWARD]), "ns", "backwards"},
    {"optimizer_ns", NUMBER_U64, 1, STEP(phase_ns[PHASE_OPTIMIZER]), "ns", "the update"},
    {"digest_ns", NUMBER_U64, 1, STEP(phase_ns[PHASE_DIGEST]), "ns",
     "digests of gradients, parameters and state, and the gradients' norm"},
    {"undefine_ns", NUMBER_U64, 1, STEP(phase_ns[PHASE_UNDEFINE]), "ns",
     "filling memory that recomputations will write with NaNs; not part of total_ns"},
    {"live_peak", NUMBER_U64, 1, STEP(live_peak), "byte",
     "most live bytes of the arena at any op: counted in dynamic memory, else planned"},
    {"rss", NUMBER_U64, 1, STEP(rss), "byte", "resident set of the process after the step"},
    {"grad_digest", NUMBER_U64, 2, STEP(gradients), NULL, digest_doc},
    {"param_digest", NUMBER_U64, 2, STEP(parameters), NULL, digest_doc},
    {"state_digest", NUMBER_U64, 2, STEP(state), NULL, digest_doc},
    {"gradients_zero", NUMBER_U8, 1, STEP(gradients_zero), NULL, "1: every gradient is zero: equality proves nothing"},
    {0},
};

const struct column record_eval_columns[] = {
    {"step", NUMBER_U32, 1, EVAL(step), NULL, "training steps done before"},
    {"loss", NUMBER_F32, 1, EVAL(loss), "1", "mean over the split"},
    {"accuracy", NUMBER_F32, 1, EVAL(accuracy), "1", "share of the split that is predicted correctly"},
    {0},
};

const char *const record_digest_paths[] = {"/digests/gradient", "/digests/parameter", "/digests/state"};

int record_digests_kept(const struct job *job)
{
    return job->spec->optimizer->state(&job->spec->optimizer_settings) > 0 ? 3 : 2;
}

static void layout_root(struct h5 *h5, const struct job *job, const char *variant, const char *id)
{
    const char *invocation = getenv("REMATCH_INVOCATION");
    char created[32];
    struct tm utc;
    time_t now = time(NULL);
    gmtime_r(&now, &utc);
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &utc);
    const char *const attributes[][2] = {
        {"schema", "rematch-run"},
        {"schema_version", "3.0"},
        {"run_id", id},
        {"experiment", job->spec->name},
        {"title", job->spec->title},
        {"variant", variant},
        {"status", "running"},
        {"created", created},
        {"software", "rematch"},
        {"software_version", BUILD_COMMIT},
        {"invocation", invocation},
        {"NX_class", "NXroot"},
        {"default", "steps"},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        h5_attribute_text(h5, "/", attributes[i][0], attributes[i][1]);
}

static void layout_spec(struct h5 *h5, const struct spec *spec)
{
    uint8_t own_size = 1;
    for (int i = 0; i < EXPECTABLE; i++) own_size &= !spec->changed[i];
    h5_group(h5, "/spec");
    h5_attribute_text(h5, "/spec", "path", spec->path);
    h5_attribute(h5, "/spec", "own_size", NUMBER_U8, &own_size);
    h5_text(h5, "/spec/text", spec->text);
    h5_text(h5, "/spec/resolved", spec->resolved);
    h5_texts(h5, "/spec/overrides", (size_t)spec->overrides, spec->override);
}

static void layout_steps(struct h5 *h5)
{
    table_layout(h5, "/steps", record_step_columns);
    h5_attribute_text(h5, "/steps", "NX_class", "NXdata");
    h5_attribute_text(h5, "/steps", "signal", "loss");
    h5_attribute_text(h5, "/steps", "axes", "step");
    table_layout(h5, "/eval", record_eval_columns);
    h5_group(h5, "/summary");
}

/* Digests of every tensor: [step, parameter, low and high word]. */
static void layout_digests(struct h5 *h5, const struct job *job)
{
    const struct graph *graph = job->graph;
    const hsize_t extent[2] = {(hsize_t)graph->parameters, 2};
    const char **names = allocate((size_t)graph->parameters, sizeof *names);
    h5_group(h5, "/digests");
    for (int i = 0; i < graph->parameters; i++) names[i] = graph->parameter[i].name;
    h5_texts(h5, "/digests/tensor", (size_t)graph->parameters, names);
    free(names);
    h5_series(h5, "/digests/step", NUMBER_U32, 0, NULL);
    h5_scale(h5, "/digests/step", "step");
    h5_scale(h5, "/digests/tensor", "tensor");
    for (int i = 0; i < record_digests_kept(job); i++) {
        h5_series(h5, record_digest_paths[i], NUMBER_U64, 2, extent);
        h5_attach(h5, record_digest_paths[i], 0, "/digests/step");
        h5_attach(h5, record_digest_paths[i], 1, "/digests/tensor");
        h5_attach(h5, record_digest_paths[i], 2, "/steps/pair");
    }
}

static void layout_memory(struct h5 *h5, const struct job *job)
{
    static const char *const modes[] = {
        [MEMORY_PLANNED] = "planned", [MEMORY_DYNAMIC] = "dynamic", [MEMORY_POISON] = "poison"};
    const hsize_t ops = (hsize_t)job->plan->lowered.ops;
    record_memory(h5, job->plan);
    h5_attribute_text(h5, "/memory", "mode", modes[job->spec->memory]);
    h5_series(h5, "/memory/step", NUMBER_U32, 0, NULL);
    h5_series(h5, "/memory/live", NUMBER_U64, 1, &ops);
    h5_scale(h5, "/memory/step", "step");
    h5_attach(h5, "/memory/live", 0, "/memory/step");
    h5_attach(h5, "/memory/live", 1, "/plan/ops/op");
    h5_attribute_text(h5, "/memory/live", "units", "byte");
    h5_attribute_text(h5, "/memory/live", "long_name",
                      job->spec->memory == MEMORY_DYNAMIC
                          ? "live bytes while the op ran, as the allocator counted them"
                          : "live bytes of the arena while the op ran, as planned: this mode does not count them");
}

void record_layout(struct h5 *h5, const struct job *job, const char *variant, const char *id)
{
    layout_root(h5, job, variant, id);
    layout_spec(h5, job->spec);
    provenance_write(h5, job);
    record_plan(h5, job);
    layout_steps(h5);
    if (job->spec->record_digests) layout_digests(h5, job);
    layout_memory(h5, job);
    if (job->spec->record_state) record_state_layout(h5, job);
}
