#include "plan/schedule.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = INT32_MAX / 32 }; /* of a node, forward or backward: the ops are counted by an int */

struct schedule schedule_empty(struct region *region) { return (struct schedule){.region = region}; }

/* By enum step_kind. */
static const char step_letters[] = "FBP";

/* The suffix of a backward, by enum relu_save. */
static const char *const relu_text[] = {":output", ":bits", ""};

static void append(struct schedule *schedule, struct step step)
{
    if (step.from >= step.to) return;
    if (schedule->steps) {
        struct step *last = &schedule->step[schedule->steps - 1];
        bool same = last->kind == step.kind && last->relu == step.relu;
        if (same && step.kind == STEP_FORWARD && last->to == step.from) {
            last->to = step.to;
            return;
        }
        if (same && step.kind == STEP_BACKWARD && last->from == step.to) {
            last->from = step.from;
            return;
        }
    }
    region_grow(schedule->region, &schedule->step, (int)schedule->steps, sizeof step);
    schedule->step[schedule->steps++] = step;
}

void schedule_append(struct schedule *schedule, enum step_kind kind, int from, int to)
{
    append(schedule, (struct step){kind, from, to, RELU_AUTO});
}

void schedule_append_backward(struct schedule *schedule, int from, int to, enum relu_save relu)
{
    append(schedule, (struct step){STEP_BACKWARD, from, to, relu});
}

void schedule_append_all(struct schedule *schedule, const struct schedule *more)
{
    for (size_t i = 0; i < more->steps; i++) append(schedule, more->step[i]);
}

enum status schedule_check(const struct schedule *schedule, int nodes, bool evaluate)
{
    int forward = 0, backward = nodes; /* first F done of [0, forward), B done of [backward, nodes) */
    int halved = nodes;                /* the last node with a P */
    size_t runs = 0;
    for (size_t i = 0; i < schedule->steps; i++) {
        const struct step *s = &schedule->step[i];
        if (s->from < 0 || s->to > nodes || s->from >= s->to)
            return fail(ST_SPEC, "step %zu of the schedule: [%d,%d) is not a range of the network's %d nodes", i + 1,
                        s->from, s->to, nodes);
        runs += (size_t)(s->to - s->from);
        if (s->kind == STEP_FORWARD) {
            if (s->from > forward)
                return fail(ST_SPEC, "step %zu of the schedule runs node %d forward, but node %d has not run yet",
                            i + 1, s->from, forward);
            if (s->to > forward) forward = s->to;
            continue;
        }
        if (evaluate) return fail(ST_SPEC, "step %zu of the schedule runs backward in an evaluation", i + 1);
        if (s->to > forward)
            return fail(ST_SPEC, "step %zu of the schedule runs node %d backward before its forward", i + 1, s->to - 1);
        if (backward == 0)
            return fail(ST_SPEC, "step %zu of the schedule runs node %d backward, but every node has run backward",
                        i + 1, s->to - 1);
        if (s->to != backward)
            return fail(ST_SPEC, "step %zu of the schedule runs node %d backward, but the next one due is node %d",
                        i + 1, s->to - 1, backward - 1);
        if (s->kind == STEP_PARAMS && (halved == s->from || s->from + 1 != s->to))
            return fail(ST_SPEC, "step %zu of the schedule runs half a backward of node %d; expected one node, once",
                        i + 1, s->from);
        if (s->kind == STEP_PARAMS)
            halved = s->from;
        else
            backward = s->from;
    }
    if (forward < nodes) return fail(ST_SPEC, "the schedule ends before node %d has run forward", forward);
    if (backward > 0 && !evaluate)
        return fail(ST_SPEC, "the schedule ends before node %d has run backward", backward - 1);
    if (runs > RUNS_MAX) return fail(ST_SPEC, "the schedule has %zu steps at nodes, more than can be planned", runs);
    return ST_OK;
}

char *schedule_print(const struct schedule *schedule, struct region *region)
{
    enum { STEP_TEXT = 40 };
    char *text = region_array(region, schedule->steps * STEP_TEXT + 1, 1), *end = text;
    for (size_t i = 0; i < schedule->steps; i++)
        end += snprintf(end, STEP_TEXT, "%s%c[%d,%d)%s", i ? " " : "", step_letters[schedule->step[i].kind],
                        schedule->step[i].from, schedule->step[i].to, relu_text[schedule->step[i].relu]);
    return text;
}

/* The non-negative number at *text, which moves past it; -1: none, or too large. */
static int number(const char **text)
{
    if (!isdigit((unsigned char)**text)) return -1;
    long value = 0;
    for (; isdigit((unsigned char)**text); ++*text) {
        value = value * 10 + (**text - '0');
        if (value > 1 << 24) return -1;
    }
    return (int)value;
}

/* The suffix of a backward at *text, which moves past it. */
static enum relu_save relu_at(const char **text)
{
    enum relu_save relu = RELU_OUTPUT;
    while (relu < RELU_AUTO && strncmp(*text, relu_text[relu], strlen(relu_text[relu])) != 0) relu++;
    *text += strlen(relu_text[relu]);
    return relu;
}

enum status schedule_parse(const char *text, struct region *region, struct schedule *schedule)
{
    *schedule = schedule_empty(region);
    for (size_t count = 1;; count++) {
        while (isspace((unsigned char)*text) || *text == '#')
            text = *text == '#' ? text + strcspn(text, "\n") : text + 1;
        if (!*text) return ST_OK;
        const char *start = text;
        const char *letter = strchr(step_letters, *text);
        struct step step = {letter ? (enum step_kind)(letter - step_letters) : STEP_FORWARD, -1, -1, RELU_AUTO};
        bool read = letter && *++text == '[' && (++text, step.from = number(&text)) >= 0 && *text == ',' &&
                    (++text, step.to = number(&text)) >= 0 && *text == ')';
        if (read) text++;
        if (read && step.kind == STEP_BACKWARD) step.relu = relu_at(&text);
        if (!read || step.from >= step.to || *text == ':')
            return fail(ST_SPEC,
                        "step %zu of the schedule, '%.*s': expected F[from,to), P[node,node+1), B[from,to), "
                        "B[from,to):output or B[from,to):bits with from < to",
                        count, (int)strcspn(start, " \t\r\n"), start);
        append(schedule, step);
    }
}
