/* Contract: wisdom is distrusted. What is taken is one of the choices that this library offers here and now, so it is
 * deterministic and as good within the limit as the rule's. */
#include "conv_choice.h"

#include <stdio.h>
#include <string.h>

enum { LISTED = 512 };

struct way conv_way(const struct conv_want *want, const struct conv_choice *choice)
{
    return (struct way){convolution_algorithm(want->pass, choice->algorithm)->name, choice->chunk};
}

/* "winograd with chunk 8 or gemm with chunk 64" */
static void list(const struct conv_want *want, const struct conv_choice *choices, int count, char text[LISTED])
{
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < count && used < LISTED; i++) {
        const struct way way = conv_way(want, &choices[i]);
        used += (size_t)snprintf(text + used, LISTED - used, "%s%s with chunk %lld", i ? " or " : "", way.algorithm,
                                 (long long)way.chunk);
    }
}

enum status conv_recall(const struct conv_want *want, const struct wisdom *wisdom, const char *key,
                        struct conv_plan *plan)
{
    static const enum pass passes[CONV_PASSES] = {PASS_FORWARD, PASS_PARAMS, PASS_INPUT};
    const enum pass pass = passes[want->pass];
    const struct wisdom_row *row = wisdom_find(wisdom, key, pass);
    struct conv_choice choices[CHOICES_MOST];
    char expected[LISTED];
    if (row == NULL)
        return fail(ST_SPEC, "%s: has no %s of (%s); %s", wisdom->path, pass_names[pass], key, wisdom->remedy);
    const int count = conv_choices(want, choices);
    if (count < 0) return ST_FAILED;
    for (int i = 0; i < count; i++) {
        const struct way way = conv_way(want, &choices[i]);
        if (strcmp(way.algorithm, row->way.algorithm) == 0 && way.chunk == row->way.chunk)
            return conv_plan_take(want, &choices[i], plan);
    }
    list(want, choices, count, expected);
    return fail(ST_SPEC, "%s: %s by %s with chunk %lld cannot be had here; expected %s; %s", row->place,
                pass_names[pass], row->way.algorithm, (long long)row->way.chunk, *expected ? expected : "another",
                wisdom->remedy);
}
