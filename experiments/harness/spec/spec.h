/* An experiment as the user wrote it: a YAML file plus key=value overrides, resolved and checked. */
#pragma once

#include "backend/backend.h"
#include "datasets/dataset.h"
#include "model/optimizer.h"
#include "policies/policy.h"
#include "train/executor.h"
#include "train/learning_rate.h"

enum expectation_what {
    EXPECT_PEAK_RATIO,
    EXPECT_LIVE_RATIO,
    EXPECT_TIME_RATIO,
    EXPECT_ACCURACY,
    EXPECT_LOSS,
    EXPECTABLE
};

/* Bounds of a published number; judged unless an override changes the number, else only printed. */
struct expectation {
    int what;            /* enum expectation_what */
    double below, above; /* NaN: not given */
    const char *source;
    const struct yaml_tree *at; /* of a sweep: the keys and values of the points that it is judged at; NULL: of all */
    const char *const *value;   /* the same by axis; NULL: any */
};

/* A point of another system, which a report shows beside the plans. */
struct published {
    const char *label, *source;
    double memory, slowdown; /* shares of what storing everything takes there */
};

/* The source of the times that planning uses. */
enum costs_kind { COSTS_FLOPS, COSTS_MEASURED };
extern const char *const costs_names[], *const spec_memory_names[]; /* the latter by enum memory_mode */

/* When parameters are updated: after the backward, or each as soon as its gradient is complete. */
enum update_when { UPDATE_SEPARATE, UPDATE_FUSED };

/* How a parameter that is not in the file of initial values is handled. */
enum init_missing { INIT_MISSING_ERROR, INIT_MISSING_INIT };

/* One axis of a sweep: a key and the values it takes, as text and as written. */
struct sweep_axis {
    const char *key;
    int count;
    const char *const *text;
    const struct yaml_tree *node; /* of the key */
    struct yaml_tree *const *value;
    int dimension; /* the first axis that it advances with; its own number: it is alone, or that one */
};

struct spec {
    struct region *region; /* owns everything, the baseline too */
    struct spec *baseline; /* the spec that the results are compared with; NULL: this is one */
    const char *path;      /* the file; its text; the canonical YAML of everything resolved */
    const char *text, *resolved;
    const struct yaml_tree *root; /* the file with its overrides */
    int overrides;
    const char *const *override;     /* "steps: 100 -> 3", printed and stored */
    const char *changed[EXPECTABLE]; /* by number: an overridden key that changes it; NULL: none */

    const char *name, *title;
    const char *model_path;             /* NULL: layers written in the spec itself */
    int64_t batch, steps, epochs, seed; /* steps or epochs is 0 */
    int64_t slices;                     /* of the batch, see model/slicing.h */
    int whole_layers; /* 0: products of few rows are kept whole, 1: none but those of the model file */
    const struct dataset_kind *data;
    struct dataset_settings data_settings;
    const struct layer *loss;
    struct loss_settings loss_settings;
    const struct optimizer *optimizer;
    struct optimizer_settings optimizer_settings;
    const struct learning_rate *learning_rate;
    struct learning_rate_settings learning_rate_settings;
    const char *backend;
    struct backend_options backend_options;
    int relu_save;        /* enum relu_save */
    bool relu_after_pool; /* graph_select_first() */
    bool pool_in_conv;    /* of struct graph */
    int rng;              /* enum rng_mode */
    int commit;           /* 1: every forward moves the running state */
    int memory;           /* enum memory_mode */
    bool drop_dead;
    const struct graph_build *graph; /* of a graph file, NULL: a spec */
    bool placed;                     /* of a graph file: buffers get offsets, as those of a spec always do */
    int64_t scaled_from;             /* of a graph file: samples that its sizes are of; 0: batch */
    const char *plan;                /* result file whose plan is used instead of the policy's, NULL: none */
    const struct policy *policy;
    struct policy_settings policy_settings;
    int update;              /* enum update_when */
    uint64_t update_part;    /* of a fused update, bytes: larger gradients are computed in parts; 0: none is */
    int costs;               /* enum costs_kind */
    const char *costs_file;  /* of measured times */
    int init;                /* enum init: the default of every layer */
    const char *init_file;   /* initial values by name, NULL: none; the path as found, if it exists */
    const char *init_prefix; /* of its names, NULL: none */
    int init_missing;        /* enum init_missing */
    int check;               /* 0 none, 1 recompute */
    int fault_kind;          /* enum fault_kind */
    int64_t fault_step;
    const char *fault_node;
    bool record_state, record_digests;
    struct setting_list record_memory_steps;
    int64_t state_every;  /* steps between two state files; 0: only where SIGTERM or SIGUSR1 stops the run */
    int64_t record_fsync; /* steps between two calls of fsync(); 0: only at the end */
    int eval_split;       /* enum split */
    int64_t eval_every;   /* epochs, or steps where steps are given; 0: never */
    const char *results;  /* folder */
    int expectations;
    struct expectation *expectation;
    int axes, points;
    struct sweep_axis *axis;
    int *point; /* of each point, the number of each axis's value [point, axis] */

    struct layer_list *layers;             /* see model.h */
    const struct yaml_tree *model_presets; /* a model file's map of parameters, NULL: none */
};

/* Reads path and applies count overrides "key.path=value". The spec's baseline stores everything and has no fault; the
 * file's baseline: block may set more of it. ST_SPEC: all errors were printed on stderr, as file:line:col with the
 * line, a caret and what was expected, and the message counts them; or the file cannot be read. */
enum status spec_load(const char *path, int count, const char *const *overrides, struct spec **spec);

/* The same; error messages call the file shown, for a temporary copy. */
enum status spec_load_as(const char *path, const char *shown, int count, const char *const *overrides,
                         struct spec **spec);

/* Reports a failure ST_SPEC whose message begins with a key of the file ("policy.budget: ...") at the key's value, as
 * spec_load() does; any other is left as it is, as where the value is an argument. Returns status. */
enum status spec_place(const struct spec *spec, enum status status);

/* Destroys the spec together with its baseline; NULL is accepted. */
void spec_destroy(struct spec *spec);

/* spec_auto *spec = NULL: destroyed at the end of the block. */
#define spec_auto struct spec __attribute__((cleanup(spec_end)))
static inline void spec_end(struct spec **spec) { spec_destroy(*spec); }

/* Values that make recomputations wrong, which the comparison must find; the baseline has its own value instead. Ended
 * by key NULL. */
struct wrong_value {
    const char *key, *value, *of_baseline;
};
extern const struct wrong_value spec_wrong_values[];

/* Whether a point of the sweep has these values, by axis; NULL: any. */
bool sweep_point_meets(const struct spec *spec, int point, const char *const *value);

/* Whether the baseline: block may set this key of the top level: it affects how a step is computed, not its results. */
bool spec_is_own(const char *key);
