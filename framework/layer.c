/* The table of layers, made from layers.def. */
#include "layer.h"

#include <string.h>

#define LAYER(name) extern const struct layer layer_##name;
#include "layers.def"
#undef LAYER

#define LAYER(name) &layer_##name,
const struct layer *const layer_table[] = {
#include "layers.def"
    NULL};
#undef LAYER

const struct layer *layer_find(const char *name)
{
    for (const struct layer *const *l = layer_table; *l; l++)
        if (!strcmp((*l)->name, name)) return *l;
    return NULL;
}
