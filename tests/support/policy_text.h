/* Policies by name, with settings as text: "segments=2 unit=stage kinds=conv,linear". */
#pragma once

#include "policies/policy.h"

/* The policy's defaults, then the pairs of text that it has keys for, the last one of a key counting. In region. */
struct policy_settings policy_text_settings(const struct policy *policy, const char *text, struct region *region);

/* policy_schedule() without its rule for open relus. */
enum status policy_text_emit(const struct network *network, const char *policy, const char *settings,
                             struct schedule *schedule);

/* The same, which must succeed, in region. */
struct schedule policy_text_schedule(const struct network *network, const char *policy, const char *settings,
                                     struct region *region);

/* Its plan; options NULL: the default. */
struct plan *policy_text_plan(const struct network *network, const char *policy, const char *settings,
                              const struct plan_options *options);

/* The same by policy_schedule(); NULL where the policy refuses, other failures end the test. */
struct plan *policy_text_try(const struct network *network, const char *policy, const char *settings,
                             const struct plan_options *options);
