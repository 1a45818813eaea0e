#include "backend/update_memory.h"

size_t update_cut(const struct graph *graph, bool fused, int states, char *block, struct update_tensor *tensor)
{
    const size_t all = graph_parameter_bytes(graph), trained = graph_trained_bytes(graph);
    char *parameter = block, *gradient = block + all, *state = gradient + (fused ? 0 : trained);
    for (int i = 0; i < graph->parameters; i++) {
        const struct parameter *p = &graph->parameter[i];
        const bool trains = p->trained >= 0;
        tensor[i] = (struct update_tensor){.parameter = (float *)(void *)parameter,
                                           .gradient = fused || !trains ? NULL : (float *)(void *)gradient,
                                           .state = states > 0 && trains ? (float *)(void *)state : NULL,
                                           .elements = p->elements,
                                           .numbers = p->definition.shape.rank > 1};
        parameter += parameter_static_bytes(p);
        if (!trains) continue;
        gradient += parameter_static_bytes(p);
        state += (size_t)states * parameter_static_bytes(p);
    }
    return all + (fused ? 0 : trained) + (size_t)states * trained;
}

struct update_part update_part_of(const struct network *network, int node, int part, float *gradients, int k)
{
    const struct parameter *p = &network->graph->parameter[network->graph->node[node].first_parameter];
    const int first = p->trained;
    const int64_t each = (int64_t)network->binding[node].footprint.part_elements,
                  before = part > 1 ? (part - 1) * each : 0;
    const int64_t left = p->elements - before, count = each && each < left ? each : left;
    if (k == 0) return (struct update_part){first, before, count, gradients};
    size_t at = each ? (size_t)each * sizeof *gradients : parameter_static_bytes(p);
    for (int i = 1; i < k; i++) at += parameter_static_bytes(&p[i]);
    return (struct update_part){first + k, 0, part > 1 ? 0 : p[k].elements, gradients + at / sizeof *gradients};
}

enum status update_open(struct update *update, struct backend *backend, struct region *region)
{
    const struct update_kind *kind = backend->kind->update;
    size_t most = 0;
    for (int i = 0; i < update->count; i++)
        if ((size_t)update->tensor[i].elements > most) most = (size_t)update->tensor[i].elements;
    NEW(region, update->squares, (size_t)update->count);
    NEW(region, update->piece, most * sizeof(float) / DIGEST_PIECE + 1);
    for (int what = 0; what < (update->states > 0 ? DIGESTEDS : DIGESTED_STATE); what++)
        NEW(region, update->digest[what], (size_t)update->count);
    return kind->prepare ? kind->prepare(backend, update) : ST_OK;
}
