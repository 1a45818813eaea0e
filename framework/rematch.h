/* The framework in the order of the data flow: from a network to its plan, the check of the plan, and training.
 *
 *     graph -> network -> schedule -> plan -> training step -> digests that two runs compare
 *
 * tests/library/example.c is a whole program. */
#pragma once

/* base: what every function uses. */
#include "base/region.h"  /* memory of set-up: many allocations that are freed together */
#include "base/setting.h" /* tables of settings: key, type, range, default; read from text and printed */
#include "base/status.h"  /* what a call that can fail returns, and its message */

/* numerics: bits that do not depend on threads or on the machine. */
#include "numerics/digest.h" /* XXH3-128 of tensors */
#include "numerics/rng.h"    /* random numbers by position: a recomputation draws the same ones */
#include "numerics/shape.h"  /* the shape of one sample */

/* model: what is computed. */
#include "model/graph.h"     /* nodes in topological order, each writing one value */
#include "model/layer.h"     /* the definition of a layer, and what a kernel does for it; the table of layers */
#include "model/optimizer.h" /* the table of optimizers */

/* backend: where it is computed. */
#include "backend/backend.h" /* memory, kernels, digests, update; the table of backends */
#include "backend/network.h" /* a graph with every kernel prepared: bytes and costs are known */

/* plan: one training step as data, before it runs. */
#include "plan/plan.h"     /* ops, buffers, offsets, numbers */
#include "plan/schedule.h" /* F[from,to) and B[from,to): all that a policy decides */

/* check: an independent judge of a plan. */
#include "check/simulate.h" /* runs a plan's data on symbols */

/* search: what is possible at all. */
#include "search/bounds.h" /* lower bounds on time and memory that hold for every schedule */
#include "search/budget.h" /* the fastest schedule found within a budget of memory */

/* policies: who decides what is recomputed. */
#include "policies/policy.h" /* the table of policies */

/* train: the plan, executed. */
#include "train/executor.h"      /* runs the ops of a plan; planned, dynamic or poisoned memory */
#include "train/learning_rate.h" /* the table of learning rate schedules */
#include "train/training_step.h" /* one step: forward, backward, update, digests */
