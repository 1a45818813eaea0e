#include "schedule.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word word_empty(struct region *region) { return (struct word){.region = region}; }

enum status word_append(struct word *word, enum step_kind kind, int from, int to)
{
    if (from >= to) return ST_OK;
    if (word->steps) {
        struct step *last = &word->step[word->steps - 1];
        if (last->kind == kind && kind == STEP_FORWARD && last->to == from) return last->to = to, ST_OK;
        if (last->kind == kind && kind == STEP_BACKWARD && last->from == to) return last->from = from, ST_OK;
    }
    if (word->steps == word->room) {
        size_t room = word->room ? word->room * 2 : 16;
        struct step *more;
        TRY(NEW(word->region, more, room));
        if (word->steps) memcpy(more, word->step, word->steps * sizeof *more);
        word->step = more;
        word->room = room;
    }
    word->step[word->steps++] = (struct step){kind, from, to};
    return ST_OK;
}

enum status word_check(const struct word *word, int nodes, bool forward_only)
{
    int forward = 0, backward = nodes; /* first F done of [0, forward), B done of [backward, nodes) */
    for (size_t i = 0; i < word->steps; i++) {
        const struct step *s = &word->step[i];
        if (s->from < 0 || s->to > nodes || s->from >= s->to)
            return fail(ST_SPEC, "step %zu of the word: [%d,%d) is not a range of the network's %d nodes", i + 1,
                        s->from, s->to, nodes);
        if (s->kind == STEP_FORWARD) {
            if (s->from > forward)
                return fail(ST_SPEC, "step %zu of the word runs node %d forward, but node %d has not run yet", i + 1,
                            s->from, forward);
            if (s->to > forward) forward = s->to;
            continue;
        }
        if (forward_only) return fail(ST_SPEC, "step %zu of the word goes backward in an evaluation", i + 1);
        if (s->to > forward)
            return fail(ST_SPEC, "step %zu of the word runs node %d backward before its forward", i + 1, s->to - 1);
        if (s->to != backward)
            return fail(ST_SPEC, "step %zu of the word runs node %d backward, but the next one due is node %d", i + 1,
                        s->to - 1, backward - 1);
        backward = s->from;
    }
    if (forward < nodes) return fail(ST_SPEC, "the word ends and node %d has not run forward", forward);
    if (backward > 0 && !forward_only)
        return fail(ST_SPEC, "the word ends and node %d has not run backward", backward - 1);
    return ST_OK;
}

char *word_print(const struct word *word, struct region *region)
{
    enum { STEP_TEXT = 32 };
    char *text = region_array(region, word->steps * STEP_TEXT + 1, 1), *end = text;
    if (!text) return NULL;
    for (size_t i = 0; i < word->steps; i++)
        end += snprintf(end, STEP_TEXT, "%s%c[%d,%d)", i ? " " : "", word->step[i].kind == STEP_FORWARD ? 'F' : 'B',
                        word->step[i].from, word->step[i].to);
    return text;
}

/* The non-negative number at *text, which moves past it; -1 where there is none or it is too large. */
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

enum status word_parse(const char *text, struct region *region, struct word *word)
{
    *word = word_empty(region);
    for (size_t count = 1;; count++) {
        while (isspace((unsigned char)*text) || *text == '#')
            text = *text == '#' ? text + strcspn(text, "\n") : text + 1;
        if (!*text) return ST_OK;
        const char *start = text;
        enum step_kind kind = *text == 'B' ? STEP_BACKWARD : STEP_FORWARD;
        int from = -1, to = -1;
        bool read = (*text == 'F' || *text == 'B') && *++text == '[' && (++text, from = number(&text)) >= 0 &&
                    *text == ',' && (++text, to = number(&text)) >= 0 && *text == ')';
        if (!read || from >= to)
            return fail(ST_SPEC, "step %zu of the word, '%.*s': expected F[from,to) or B[from,to) with from < to",
                        count, (int)strcspn(start, " \t\r\n"), start);
        text++;
        TRY(word_append(word, kind, from, to));
    }
}
