/* The plans of a job: the training plan, made by its policy or read from a file, its lower bounds, and the plan of an
 * evaluation. */
#pragma once

#include "job/job.h"
#include "run/plan_handoff.h"

/* Adds costs and plans to a prepared job. ST_SPEC, ST_MISSING or ST_FAILED with the message set. */
enum status job_make_plans(struct job *job);

/* Puts the plans before the checker, which shares no code with what made them, before they are run. ST_FAILED: one is
 * wrong; the message names its op. */
enum status job_check_plans(struct job *job);

/* Warns of what a user may not expect: other data, and settings without an effect. */
void job_warn(const struct job *job);

/* job_prepare() and job_make_plans(). */
enum status job_create(struct spec *spec, struct job **job);

/* The same with a training plan that was found before. */
enum status job_create_planned(struct spec *spec, const struct plan_handoff *handoff, struct job **job);

/* A planned job of a network without kernels, which it owns from here on; spec stays the caller's. */
enum status job_create_abstract(struct spec *spec, struct network *network, struct job **job);
