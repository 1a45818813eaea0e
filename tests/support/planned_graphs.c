#include "tests/support/planned_graphs.h"

#include <stdio.h>

#include "tests/support/spec_text.h"

int planned_overrides(char *copy, const char **argument)
{
    char *rest = NULL;
    int count = 0;
    for (char *one = strtok_r(copy, " ", &rest); one; one = strtok_r(NULL, " ", &rest)) argument[count++] = one;
    return count;
}

enum status planned_graph(const char *chain, const char *overrides, struct planned_graph *planned)
{
    static char text[4096], copy[256];
    static const char *argument[16];
    struct network *network;
    snprintf(text, sizeof text, "rematch: 1\nname: chain\n%s%s", strncmp(chain, "batch", 5) ? "stages:\n" : "", chain);
    snprintf(copy, sizeof copy, "%s", overrides);
    *planned = (struct planned_graph){.spec = NULL};
    TRY(graph_file_load(write_bytes(text, strlen(text)), planned_overrides(copy, argument), argument, &planned->spec,
                        &network));
    if (!planned->spec->policy) planned->spec->policy = policy_find("store_all");
    return job_create_abstract(planned->spec, network, &planned->job);
}

void planned_graph_done(struct planned_graph *planned)
{
    job_destroy(planned->job);
    spec_destroy(planned->spec);
}
