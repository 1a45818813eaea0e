/* The columns of /steps and /eval, the attributes of /summary, and which steps have a row of /memory. */
#include "result/record.h"

#include <time.h>

#define STEP(member)      offsetof(struct step_record, member)
#define EVAL(member)      offsetof(struct eval_record, member)
#define SUMMARY(member)   offsetof(struct run_summary, member)
#define NUMBER_AT(member) offsetof(struct record_numbers, member)

static const char digest_doc[] = "XXH3-128 of the tensor digests in parameter order; low word, high word";

const struct field record_step_columns[] = {
    {"step", NUMBER_U32, 1, STEP(step), NULL, "number of the training step, from 0"},
    {"loss", NUMBER_F32, 1, STEP(result.loss), "1", "loss of the batch before the update"},
    {"loss_bits", NUMBER_U32, 1, STEP(result.loss), NULL, "IEEE-754 binary32 pattern of loss"},
    {"metric", NUMBER_F32, 1, STEP(metric), "1", "share of the batch that is predicted correctly"},
    {"lr", NUMBER_F64, 1, STEP(result.lr), "1", "learning rate of the update"},
    {"grad_norm", NUMBER_F64, 1, STEP(result.gradient_norm), "1", "L2 norm of all gradients, before they are clipped"},
    {"total_ns", NUMBER_U64, 1, STEP(total_ns), "ns",
     "the whole step: the times of the following columns, and the time between ops"},
    {"data_ns", NUMBER_U64, 1, STEP(data_ns), "ns", "reading the batch"},
    {"forward_ns", NUMBER_U64, 1, STEP(result.phase_ns[PHASE_FORWARD]), "ns", "first forwards"},
    {"recompute_ns", NUMBER_U64, 1, STEP(result.phase_ns[PHASE_RECOMPUTE]), "ns", "recomputed forwards"},
    {"backward_ns", NUMBER_U64, 1, STEP(result.phase_ns[PHASE_BACKWARD]), "ns", "backwards"},
    {"optimizer_ns", NUMBER_U64, 1, STEP(result.phase_ns[PHASE_OPTIMIZER]), "ns", "the update"},
    {"digest_ns", NUMBER_U64, 1, STEP(result.phase_ns[PHASE_DIGEST]), "ns",
     "digests of gradients, parameters and state, and the gradients' norm"},
    {"undefine_ns", NUMBER_U64, 1, STEP(result.phase_ns[PHASE_UNDEFINE]), "ns",
     "filling memory that recomputations will write with NaNs; not part of total_ns"},
    {"live_peak", NUMBER_U64, 1, STEP(live_peak), "byte",
     "most live bytes of the arena at any op: counted in dynamic memory, else planned"},
    {"rss", NUMBER_U64, 1, STEP(rss), "byte", "resident set of the process after the step"},
    {"grad_digest", NUMBER_U64, 2, STEP(result.gradients), NULL, digest_doc},
    {"param_digest", NUMBER_U64, 2, STEP(result.parameters), NULL, digest_doc},
    {"state_digest", NUMBER_U64, 2, STEP(result.state), NULL, digest_doc},
    {"running_digest", NUMBER_U64, 2, STEP(result.running), NULL, "the same of the running state; 0, 0: there is none"},
    {"gradients_zero", NUMBER_U8, 1, STEP(gradients_zero), NULL, "1: every gradient is zero: equality proves nothing"},
    {0},
};

const struct field record_eval_columns[] = {
    {"step", NUMBER_U32, 1, EVAL(step), NULL, "training steps done before"},
    {"loss", NUMBER_F32, 1, EVAL(loss), "1", "mean over the split"},
    {"accuracy", NUMBER_F32, 1, EVAL(accuracy), "1", "share of the split that is predicted correctly"},
    {0},
};

const struct field record_summary_columns[] = {
    {"high_water_bytes", NUMBER_U64, 1, SUMMARY(high_water)},
    {"start_rss_bytes", NUMBER_U64, 1, SUMMARY(start_rss)},
    {"wall_ns", NUMBER_U64, 1, SUMMARY(wall_ns)},
    {"setup_ns", NUMBER_U64, 1, SUMMARY(setup_ns)},
    {"states_ns", NUMBER_U64, 1, SUMMARY(states_ns)},
    {0},
};

const struct field record_number_columns[] = {
    {"steps", NUMBER_U64, 1, NUMBER_AT(steps)},
    {"live_peak_bytes", NUMBER_U64, 1, NUMBER_AT(live_peak)},
    {"peak_bytes", NUMBER_U64, 1, NUMBER_AT(peak)},
    {"timed_steps", NUMBER_U64, 1, NUMBER_AT(timing.steps)},
    {"overhead_bytes", NUMBER_U64, 1, NUMBER_AT(overhead)},
    {"final_loss", NUMBER_F32, 1, NUMBER_AT(final_loss)},
    {"step_median_ns", NUMBER_F64, 1, NUMBER_AT(timing.median_ns)},
    {"step_least_ns", NUMBER_F64, 1, NUMBER_AT(timing.least_ns)},
    {"step_most_ns", NUMBER_F64, 1, NUMBER_AT(timing.most_ns)},
    {0},
};

const struct field record_device_columns[] = {{"device_overhead_bytes", NUMBER_U64, 1, NUMBER_AT(device_overhead)},
                                              {0}};

bool record_wants_memory(const struct spec *spec, int64_t step)
{
    for (size_t i = 0; i < spec->record_memory_steps.count; i++)
        if (spec->record_memory_steps.ints[i] == step) return true;
    return false;
}

char *record_time(char text[RECORD_TIME])
{
    struct tm utc;
    time_t now = time(NULL);
    gmtime_r(&now, &utc);
    strftime(text, RECORD_TIME, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text;
}
