/* An experiment at one point: the spec itself (the variant) and the same spec storing everything (the baseline). Both
 * are planned before either runs, run one after the other, and compared. */
#pragma once

#include "analysis/compare.h"
#include "analysis/plan_summary.h"
#include "run/child.h"
#include "run/plan_handoff.h"
#include "spec/spec.h"

enum side_index { SIDE_BASELINE, SIDE_VARIANT, SIDES };
extern const char *const side_names[SIDES];

struct side {
    struct spec *spec;
    struct job *job;
    struct plan_summary *summary;
    struct run_report report; /* after its run */
};

/* Plans that were found before, of a spec with this digest; without data: there are none. */
struct plans {
    struct digest spec;
    struct plan_handoff side[SIDES];
};

struct experiment {
    struct side side[SIDES];      /* the variant's spec owns the baseline's */
    struct comparison comparison; /* after both */
    bool compared;
};

/* Whether runs go on from the states that earlier commands left. */
enum resume { RESUME_AUTO, RESUME_MUST, RESUME_NEVER };

/* The request on the command line. */
struct request {
    const char *spec; /* path */
    int overrides;
    const char *const *override; /* key=value */
    bool quiet, verbose;
    bool json;        /* one object on stdout, and no other text there; quiet is set, too */
    bool only[SIDES]; /* run only that side */

    /* Of a sweep. */
    bool force, print_commands; /* finished points too; print what would run each point */
    int64_t jobs, point;        /* points at a time; from 1: this one alone, 0: all */
    int shard, shards;          /* from 1: points shard, shard + shards, ...; 0: all */

    enum resume resume;
};

/* Plans both sides of the spec, which the experiment owns from then on, or takes plans of the same spec. Errors are
 * reported on stderr; the experiment is to be destroyed in any case. */
enum status experiment_create(struct spec *spec, const struct plans *plans, struct experiment **experiment);

/* Its plans, for an experiment later; they live in region. */
struct plans experiment_plans(const struct experiment *experiment, struct region *region);

/* NULL is accepted. */
void experiment_destroy(struct experiment *experiment);

/* ST_FAILED: a side that will run does not fit the machine's memory. */
enum status experiment_fits(const struct experiment *experiment, const struct request *request);

/* Finds what goes on from an earlier command's state. ST_MISSING: no side does, but must. */
enum status experiment_resume(struct experiment *experiment, const struct request *request, struct region *region);

/* Runs one side in a process of its own; *code as in child_run. */
enum status experiment_run_side(struct experiment *experiment, enum side_index side, const struct request *request,
                                int *code);

/* Whether the variant's file can be compared: the run succeeded, or (code ST_FAILED) a number was not finite, unlike in
 * the baseline. */
bool experiment_ended(const struct experiment *experiment, int code);

/* Compares the two files; of an unfinished variant, the committed steps. */
enum status experiment_compare(struct experiment *experiment);

/* experiment_print.c: prints predicted and measured memory and time of both, with verbose also what sets them; judges
 * the spec's expectations, false: one of them failed. */
void experiment_print_side(const struct side *side, const char *name, bool verbose, FILE *out);
void experiment_print(const struct experiment *experiment, bool verbose, FILE *out);
bool experiment_expectations(const struct experiment *experiment, FILE *out);

/* Runs, comparison and expectations as one tree, as far as there are any. */
json_t *experiment_json(const struct experiment *experiment, int code);

/* Judges one of spec's expectations, which its overrides may exempt; text: the number, its bounds and the judgement. */
enum judgement { NOT_JUDGED, MET, UNMET };
enum { EXPECTATION_TEXT = 512 };
enum judgement experiment_expectation(const struct experiment *experiment, const struct spec *spec,
                                      const struct expectation *x, char text[EXPECTATION_TEXT]);

/* `rematch run` of a spec without a sweep; destroys the spec and returns the exit code. */
int experiment_run(const struct request *request, struct spec *spec);

/* sweep.c: `rematch run` of a spec with a sweep: its points, or those that the request names; each run is a process of
 * its own, and a run whose finished file is there is not repeated. At the end a table and an index of all points. A key
 * that an override sets is not swept. Destroys the spec. Returns the exit code of the worst point: a point that fails
 * does not stop the others, a signal does. */
int sweep_run(const struct request *request, struct spec *spec);
