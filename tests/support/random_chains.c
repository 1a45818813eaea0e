#include "random_chains.h"

#include <criterion/criterion.h>

/* 0 in one of four. */
static uint32_t some_below(struct source *source, int64_t limit)
{
    return draw_below(source, 4) ? draw_below(source, (uint32_t)limit) : 0;
}

void chain_draw(struct source *source, const struct abstract_stage *limits, int stages, struct abstract_stage *stage)
{
    for (int i = 0; i < stages; i++) {
        struct abstract_stage *s = &stage[i];
        *s = (struct abstract_stage){.forward = draw_below(source, (uint32_t)limits->forward)};
        s->backward = draw_below(source, (uint32_t)limits->backward);
        s->output = draw_below(source, (uint32_t)limits->output);
        s->saved = some_below(source, limits->saved);
        s->gradient = draw_below(source, (uint32_t)limits->gradient);
        s->forward_scratch = some_below(source, limits->forward_scratch);
        s->backward_scratch = some_below(source, limits->backward_scratch);
        s->split = limits->split && draw_below(source, 2);
    }
}

struct network *chain_network(const struct abstract_stage *stage, int stages)
{
    struct network *network;
    int at;
    cr_assert(abstract_create(stage, stages, &at, &network) == ST_OK, "%s", status_message());
    return network;
}
