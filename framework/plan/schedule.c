#include "plan/schedule.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = INT32_MAX / 32 }; /* of a node, forward or backward: the ops are counted by an int */

struct schedule schedule_empty(struct region *region) { return (struct schedule){.region = region}; }

/* By enum step_kind. */
static const char step_letters[] = "FBP";

void schedule_append_step(struct schedule *schedule, struct step step)
{
    if (step.from >= step.to) return;
    if (schedule->steps) {
        struct step *last = &schedule->step[schedule->steps - 1];
        bool same = last->kind == step.kind && last->slice == step.slice;
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
    schedule_append_step(schedule, (struct step){kind, from, to, WHOLE_BATCH});
}

struct schedule schedule_store_all(int nodes, struct region *region)
{
    struct schedule schedule = schedule_empty(region);
    schedule_append(&schedule, STEP_FORWARD, 0, nodes);
    schedule_append(&schedule, STEP_BACKWARD, 0, nodes);
    return schedule;
}

/* Where the part of a step from node at on ends that is all sliced or all whole, in the step's direction: [*from, *to).
 */
static bool part_of(const struct slicing *slicing, const struct step *step, int at, int *from, int *to)
{
    const bool forward = step->kind == STEP_FORWARD;
    int left = forward ? at : at - 1, right = left + 1;
    const bool whole = slicing_whole(slicing, left);
    while (forward && right < step->to && slicing_whole(slicing, right) == whole) right++;
    while (!forward && left > step->from && slicing_whole(slicing, left - 1) == whole) left--;
    *from = left;
    *to = right;
    return whole;
}

/* Appends the steps, one slice after the other, and empties the list. */
static void flush(struct schedule *schedule, const struct slicing *slicing, struct schedule *run)
{
    for (int k = 0; k < slicing->slices; k++)
        for (size_t i = 0; i < run->steps; i++) {
            struct step step = run->step[i];
            step.slice = k;
            schedule_append_step(schedule, step);
        }
    run->steps = 0;
}

void schedule_append_by_slice(struct schedule *schedule, const struct slicing *slicing, const struct schedule *all)
{
    struct schedule run = schedule_empty(schedule->region);
    for (size_t i = 0; i < all->steps; i++) {
        const struct step *s = &all->step[i];
        const bool forward = s->kind == STEP_FORWARD;
        for (int at = forward ? s->from : s->to, from, to; at != (forward ? s->to : s->from);
             at = forward ? to : from) {
            const bool whole = part_of(slicing, s, at, &from, &to);
            if (whole) flush(schedule, slicing, &run);
            schedule_append_step(whole ? schedule : &run, (struct step){s->kind, from, to, WHOLE_BATCH});
        }
    }
    flush(schedule, slicing, &run);
}

void schedule_append_all(struct schedule *schedule, const struct schedule *more)
{
    for (size_t i = 0; i < more->steps; i++) schedule_append_step(schedule, more->step[i]);
}

/* What has run of one slice: the first F of nodes [0, forward), the B of [backward, nodes), the last P of halved. */
struct progress {
    int forward, backward, halved;
    char slice[24]; /* " for slice 3", where there are several */
};

/* The step's number, node and slice, before what is wrong. */
static enum status refuse(const struct progress *p, size_t step, int node, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static enum status refuse(const struct progress *p, size_t step, int node, const char *format, ...)
{
    char what[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return fail(ST_SPEC, "step %zu of the schedule runs node %d%s %s", step, node, p->slice, what);
}

/* A step's nodes for one slice, of which before has run for the slice before it (NULL: it is the first). */
static enum status advance(struct progress *p, const struct progress *before, const struct step *s, size_t i)
{
    if (s->kind == STEP_FORWARD) {
        if (s->from > p->forward) return refuse(p, i, s->from, "forward, but node %d has not run yet", p->forward);
        if (before && s->to > p->forward && s->to > before->forward)
            return refuse(p, i, before->forward > s->from ? before->forward : s->from,
                          "forward for the first time, but not yet for the slice before");
        if (s->to > p->forward) p->forward = s->to;
        return ST_OK;
    }
    if (s->to > p->forward) return refuse(p, i, s->to - 1, "backward before its forward");
    if (p->backward == 0) return refuse(p, i, s->to - 1, "backward, but every node has run backward");
    if (s->to != p->backward)
        return refuse(p, i, s->to - 1, "backward, but the next one due is node %d", p->backward - 1);
    if (before && s->from < before->backward && (s->kind == STEP_BACKWARD || before->halved != s->from))
        return refuse(p, i, before->backward - 1, "backward, but not yet for the slice before");
    if (s->kind == STEP_PARAMS && (p->halved == s->from || s->from + 1 != s->to))
        return fail(ST_SPEC, "step %zu of the schedule runs half a backward of node %d%s; expected one node, once", i,
                    s->from, p->slice);
    if (s->kind == STEP_PARAMS)
        p->halved = s->from;
    else
        p->backward = s->from;
    return ST_OK;
}

/* A step of a slice: it exists, and no node of the step is whole. */
static enum status check_slice(const struct slicing *slicing, const struct step *s, size_t i)
{
    if (s->slice == WHOLE_BATCH) return ST_OK;
    if (slicing->slices == 1)
        return fail(ST_SPEC, "step %zu of the schedule: slice %d; expected none, the batch is not divided (slices: 1)",
                    i, s->slice);
    if (s->slice >= slicing->slices)
        return fail(ST_SPEC, "step %zu of the schedule: slice %d; expected one of 0..%d", i, s->slice,
                    slicing->slices - 1);
    for (int n = s->from; n < s->to; n++)
        if (slicing_whole(slicing, n))
            return fail(ST_SPEC,
                        "step %zu of the schedule runs node %d for slice %d; expected no slice, the node computes the "
                        "whole batch at once",
                        i, n, s->slice);
    return ST_OK;
}

static enum status check_step(const struct slicing *slicing, struct progress *progress, const struct step *s, size_t i,
                              bool evaluate)
{
    if (s->from < 0 || s->to > slicing->nodes || s->from >= s->to)
        return fail(ST_SPEC, "step %zu of the schedule: [%d,%d) is not a range of the network's %d nodes", i, s->from,
                    s->to, slicing->nodes);
    if (evaluate && s->kind != STEP_FORWARD)
        return fail(ST_SPEC, "step %zu of the schedule runs backward in an evaluation", i);
    TRY(check_slice(slicing, s, i));
    for (int k = 0; k < slicing->slices; k++)
        if (s->slice == WHOLE_BATCH || s->slice == k) TRY(advance(&progress[k], k ? &progress[k - 1] : NULL, s, i));
    return ST_OK;
}

/* A slice has run. */
static enum status check_end(const struct progress *p, int nodes, bool evaluate)
{
    if (p->forward < nodes)
        return fail(ST_SPEC, "the schedule ends before node %d has run forward%s", p->forward, p->slice);
    if (p->backward > 0 && !evaluate)
        return fail(ST_SPEC, "the schedule ends before node %d has run backward%s", p->backward - 1, p->slice);
    return ST_OK;
}

enum status schedule_check(const struct schedule *schedule, const struct slicing *slicing, bool evaluate)
{
    struct progress *progress = allocate((size_t)slicing->slices, sizeof *progress);
    for (int k = 0; k < slicing->slices; k++) {
        progress[k] = (struct progress){0, slicing->nodes, slicing->nodes, ""};
        if (slicing->slices > 1) snprintf(progress[k].slice, sizeof progress[k].slice, " for slice %d", k);
    }
    enum status status = ST_OK;
    size_t runs = 0;
    for (size_t i = 0; status == ST_OK && i < schedule->steps; i++) {
        const struct step *s = &schedule->step[i];
        status = check_step(slicing, progress, s, i + 1, evaluate);
        runs += (size_t)(s->to - s->from) * (s->slice == WHOLE_BATCH ? (size_t)slicing->slices : 1);
    }
    for (int k = 0; k < slicing->slices && status == ST_OK; k++)
        status = check_end(&progress[k], slicing->nodes, evaluate);
    free(progress);
    TRY(status);
    if (runs > RUNS_MAX) return fail(ST_SPEC, "the schedule has %zu steps at nodes, more than can be planned", runs);
    return ST_OK;
}

char *schedule_print(const struct schedule *schedule, struct region *region)
{
    enum { STEP_TEXT = 48 };
    char *text = region_array(region, schedule->steps * STEP_TEXT + 1, 1), *end = text;
    for (size_t i = 0; i < schedule->steps; i++) {
        const struct step *s = &schedule->step[i];
        end += snprintf(end, STEP_TEXT, "%s%c[%d,%d)", i ? " " : "", step_letters[s->kind], s->from, s->to);
        if (s->slice != WHOLE_BATCH) end += snprintf(end, STEP_TEXT, "/%d", s->slice);
    }
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

enum status schedule_parse(const char *text, struct region *region, struct schedule *schedule)
{
    *schedule = schedule_empty(region);
    for (size_t count = 1;; count++) {
        while (isspace((unsigned char)*text) || *text == '#')
            text = *text == '#' ? text + strcspn(text, "\n") : text + 1;
        if (!*text) return ST_OK;
        const char *start = text;
        const char *letter = strchr(step_letters, *text);
        struct step step = {letter ? (enum step_kind)(letter - step_letters) : STEP_FORWARD, -1, -1, WHOLE_BATCH};
        bool read = letter && *++text == '[' && (++text, step.from = number(&text)) >= 0 && *text == ',' &&
                    (++text, step.to = number(&text)) >= 0 && *text == ')';
        if (read) text++;
        if (read && *text == '/') read = (++text, step.slice = number(&text)) >= 0;
        if (!read || step.from >= step.to || *text == ':')
            return fail(
                ST_SPEC,
                "step %zu of the schedule, '%.*s': expected F[from,to), B[from,to) or P[node,node+1) with from < "
                "to, of one slice with /slice behind it%s",
                count, (int)strcspn(start, " \t\r\n"), start,
                *text == ':' ? "; what relus keep is set by relu_save alone" : "");
        schedule_append_step(schedule, step);
    }
}
