/* Trains a small net under a policy; a trace has the results of its steps, and two traces are compared. */
#pragma once

#include "policies/policy.h"
#include "small_networks.h"
#include "train/training_step.h"

enum { STEPS_MAX = 100 };

/* A net bound to a backend; a network is prepared once for all its plans, as in a sweep. */
struct bench {
    const struct net *net;
    struct backend *backend;
    struct graph *graph;
    struct network *network;
};

/* How it learns; the state of either is under test. */
struct learner {
    const char *name, *rate;
    struct optimizer_settings settings;
};
extern const struct learner momentum, adamw, averaged; /* averaged: with averages of the parameters */

struct trial {
    const struct bench *bench;
    const struct learner *learner;
    const struct policy *policy;
    const char *settings; /* as text (policy_text.h); NULL: the defaults */
    bool drop_dead;
    enum rng_mode rng;
    enum memory_mode memory;
    bool commit_every; /* of the executor's options */
    int steps;
    struct fault fault;
};

/* steps: that were run; fewer than the trial's where a step with a fault failed, with failure as the reason. */
struct trace {
    int steps, recomputations;
    char failure[512];
    float loss[STEPS_MAX];
    double norm[STEPS_MAX];
    struct digest gradients[STEPS_MAX], parameters[STEPS_MAX], state[STEPS_MAX], running[STEPS_MAX];
};

struct bench set_up_graph(const struct net *net, const char *backend, struct graph *graph);
struct bench set_up_conv(const struct net *net, const char *backend, struct graph *graph,
                         enum conv_algorithm algorithm);
struct bench set_up(const struct net *net, const char *backend, enum relu_save relu);
void tear_down(struct bench *bench);

struct plan *plan_of(const struct trial *trial);
void run_plan(const struct trial *trial, struct plan *plan, struct trace *trace);
void run(const struct trial *trial, struct trace *trace);

/* The first step at which two traces differ in any bit, or that one of them lacks, -1: none. */
int first_difference(const struct trace *a, const struct trace *b, int steps);

/* The index-th of the settings under which every policy is tried, with all the net's groups and kinds of layers that it
 * has. On a device the scratch of small nets leaves a budget no choice: it is 100 %. Lives as long as the graph. */
enum { TRIED = 3 };
const char *tried_settings(const struct bench *bench, size_t index);
