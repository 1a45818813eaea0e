/* Random networks with shortcuts, in seven families, and three long ones. They are planned, never run. */
#pragma once

#include "planned_networks.h"

enum family { ONE_SHORTCUT, NESTED, ADDITIVE_UNET, CONCAT_UNET, RESIDUAL_BLOCKS, DENSE_BLOCKS, ANY_GRAPH, FAMILIES };
extern const char *const family_names[FAMILIES];

/* A network of about nodes nodes, the loss among them, with whole numbers as times. */
void family_draw(struct sketch *sketch, struct source *source, enum family family, int nodes);
