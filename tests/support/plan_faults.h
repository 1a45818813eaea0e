/* Everything that can be wrong with a plan, made so. */
#pragma once

#include "plan/plan_data.h"
#include "planned_networks.h"

struct alteration {
    const char *name;
    /* Alters the data somewhere; false: this one has nothing to alter so. */
    bool (*alter)(struct plan_data *data, struct source *source);
    const char *says; /* in the message of who notices; NULL: any of several things */
};

enum { ALTERATIONS = 54 };
extern const struct alteration alterations[ALTERATIONS];

/* Removes a buffer; the last one takes its number. */
void plan_data_forget(struct plan_data *data, int id);

/* aimed.c: one a check that ops do what they must; of a plan with room for a buffer more. */
enum { AIMED_ALTERATIONS = 45 };
extern const struct alteration aimed[AIMED_ALTERATIONS];
