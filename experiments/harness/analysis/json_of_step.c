#include "analysis/plan_summary.h"
#include "search/step_model.h"

static json_t *json_of_node(const struct step_model *m, int n)
{
    const struct node *node = &m->network->graph->node[n];
    json_t *inputs = json_array();
    for (int k = 0; k < node->layer->inputs; k++)
        if (node->inputs[k]) ADD(inputs, node->inputs[k] - 1);
    return OBJECT(KEY("name", node->name), KEY("inputs", inputs), KEY("value_bytes", m->value[n]),
                  KEY("saved_bytes", m->saved[n]), KEY("scratch_bytes", m->scratch[n]),
                  KEY("unsaved_bytes", m->unsaved[n]), KEY("time", m->time[n]), KEY("over", json_boolean(m->over[n])));
}

/* reads: the nodes whose values the event reads; reads_saved: those whose saved tensors. */
static json_t *json_of_event(const struct step_model *m, const struct step_event *e)
{
    const struct node *node = &m->network->graph->node[e->node];
    const bool forward = e->kind == STEP_FORWARD;
    const char *kind = forward ? "forward" : e->half ? "half" : "backward";
    json_t *reads = json_array(), *saved = json_array();
    for (int k = 0; forward && k < node->layer->inputs; k++)
        if (node->inputs[k]) ADD(reads, node->inputs[k] - 1);
    for (struct reading r = step_reading(m, e); !forward && reading_next(&r);) ADD(r.saved ? saved : reads, r.node);
    return OBJECT(KEY("node", e->node), KEY("kind", kind), KEY("reads", reads), KEY("reads_saved", saved),
                  KEY("during_bytes", e->during), KEY("after_bytes", e->after), KEY("before_bytes", e->before));
}

json_t *json_of_step(const struct plan *plan)
{
    region_auto *region = region_create();
    const struct step_model m = step_model_create(plan->network, &plan->options.lower, region);
    json_t *nodes = json_array(), *events = json_array();
    for (int n = 0; n < m.nodes; n++) ADD(nodes, json_of_node(&m, n));
    for (int e = 0; e < m.events; e++) ADD(events, json_of_event(&m, &m.event[e]));
    return OBJECT(KEY("floor", m.floor), KEY("nodes", nodes), KEY("events", events));
}
